//go:build amd64 || arm64

package confine

import (
	"slices"

	"golang.org/x/sys/unix"
)

// starting are the calls that start programs.
var starting = []uint32{unix.SYS_EXECVE, unix.SYS_EXECVEAT}

// samplerRefused are calls that candid never makes: they change other processes, the machine, or what
// candid sees of it.
var samplerRefused = []uint32{
	unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_FANOTIFY_INIT, unix.SYS_PERSONALITY,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// readerRefused are the calls that a process that reads files never makes.
var readerRefused = slices.Concat([]uint32{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN}, starting, samplerRefused)
