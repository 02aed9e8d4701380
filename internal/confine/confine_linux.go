//go:build amd64 || arm64

package confine

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// files are the capabilities that reading and writing files takes that root may: those of other
// users, as with sudo candid report, and the addresses in /proc/kallsyms, for perf.data.
const files = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER | 1<<unix.CAP_SYSLOG

// The arguments of system calls that every thread makes: they must not move.
var (
	header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	caps   [2]unix.CapUserData
)

// Reader is for a process that from now on only reads and writes files and serves what it read: it
// gives up all capabilities that those do not take, for good, and every system call that looks at
// other processes, starts programs or changes the machine is refused from then on. What the kernel or
// a container does not permit is left out.
func Reader() {
	if unix.Capget(&header, &caps[0]) == nil {
		for i := range caps {
			keep := uint32(uint64(files) >> (32 * i))
			caps[i].Effective &= keep
			caps[i].Permitted &= keep
			caps[i].Inheritable = 0
		}
		// Permitted capabilities that are given up are no ambient ones any more (capabilities(7)).
		_, _, _ = syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&caps[0])), 0)
	}
	filter(refused)
}

// filter installs a seccomp filter for all threads, which refuses system calls with EPERM.
func filter(calls []uint32) {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atmost = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		ret    = unix.BPF_RET | unix.BPF_K
		// Offsets in struct seccomp_data (include/uapi/linux/seccomp.h).
		number, arch = 0, 4
		deny         = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		x32          = 0x40000000 // __X32_SYSCALL_BIT: the same calls under other numbers
	)
	program := []unix.SockFilter{
		{Code: load, K: arch},
		{Code: equal, Jt: 1, K: auditArch},
		{Code: ret, K: deny},
		{Code: load, K: number},
		{Code: atmost, Jf: 1, K: x32},
		{Code: ret, K: deny},
	}
	for _, c := range calls {
		program = append(program, unix.SockFilter{Code: equal, Jf: 1, K: c}, unix.SockFilter{Code: ret, K: deny})
	}
	program = append(program, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return
	}
	// The other threads get both.
	_, _, _ = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&p)))
	runtime.KeepAlive(program)
}

// refused are the calls that a process that reads files never makes.
var refused = []uint32{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}
