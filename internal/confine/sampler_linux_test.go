//go:build amd64 || arm64

package confine

import (
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sampling confines a process as one that records and prints what it can do then.
func sampling() {
	stay := make(chan bool)
	for range 4 {
		go func() { runtime.LockOSThread(); <-stay }()
	}
	target := exec.Command("sleep", "100")
	target.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	runtime.LockOSThread() // the thread that traces, and whose end ends the target
	if err := target.Start(); err != nil {
		fmt.Println("failed:", err)
		return
	}
	s := Sampler{}
	s.Attach()
	before := exec.Command("true").Run()
	if err := s.Attached(func() error { return exec.Command("true").Run() }); err != nil || before != nil {
		fmt.Println("failed: programs that are started before the filter is installed:", before, err)
	}
	printPrivileges()
	pid := target.Process.Pid
	may := func(what string, errno unix.Errno) {
		if errno != 0 {
			fmt.Println("failed:", what, errno)
		}
	}
	call := func(number uintptr, a ...uintptr) unix.Errno {
		var all [6]uintptr
		copy(all[:], a)
		_, _, errno := unix.Syscall6(number, all[0], all[1], all[2], all[3], all[4], all[5])
		return errno
	}
	var word [8]byte
	local, remote := unix.Iovec{Base: &word[0], Len: 8}, unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&word[0])), Len: 8}
	vm := []uintptr{uintptr(os.Getpid()), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0}
	may("process_vm_readv", call(unix.SYS_PROCESS_VM_READV, vm...))
	may("PTRACE_SEIZE", call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid)))
	may("PTRACE_INTERRUPT", call(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, uintptr(pid)))
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
		fmt.Println("failed: the target does not stop", err, status)
	}
	var info [128]byte
	may("PTRACE_GETSIGINFO", call(unix.SYS_PTRACE, unix.PTRACE_GETSIGINFO, uintptr(pid), 0, uintptr(unsafe.Pointer(&info))))
	var regs [1024]byte
	iov := unix.Iovec{Base: &regs[0], Len: uint64(len(regs))}
	may("PTRACE_GETREGSET", call(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(pid), 1, uintptr(unsafe.Pointer(&iov)))) // NT_PRSTATUS
	const rax, restart = 10 * 8, 514
	if runtime.GOARCH == "amd64" {
		may("POKEUSR of -ERESTARTNOHAND", call(unix.SYS_PTRACE, unix.PTRACE_POKEUSR, uintptr(pid), rax, ^uintptr(restart)+1))
	}
	for name, errno := range map[string]unix.Errno{
		"process_vm_writev":            call(unix.SYS_PROCESS_VM_WRITEV, vm...),
		"PTRACE_SETREGSET":             call(unix.SYS_PTRACE, unix.PTRACE_SETREGSET, uintptr(pid), 1, uintptr(unsafe.Pointer(&iov))),
		"PTRACE_POKEDATA":              call(unix.SYS_PTRACE, unix.PTRACE_POKEDATA, uintptr(pid), 4096, 0),
		"PTRACE_POKETEXT":              call(unix.SYS_PTRACE, unix.PTRACE_POKETEXT, uintptr(pid), 4096, 0),
		"PTRACE_ATTACH":                call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(pid), 0, 0),
		"PTRACE_POKEUSR elsewhere":     call(unix.SYS_PTRACE, unix.PTRACE_POKEUSR, uintptr(pid), rax+8, ^uintptr(restart)+1),
		"PTRACE_POKEUSR of the result": call(unix.SYS_PTRACE, unix.PTRACE_POKEUSR, uintptr(pid), rax, 0),
		"execve":                       call(unix.SYS_EXECVE, 0, 0, 0),
		"BPF_PROG_LOAD":                call(unix.SYS_BPF, unix.BPF_PROG_LOAD, 0, 0),
		"mount":                        unix.Mount("none", "/", "", unix.MS_REMOUNT, "").(unix.Errno),
		"a key":                        call(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 0),
	} {
		if errno != unix.EPERM {
			fmt.Printf("failed: %s is not refused: %v\n", name, errno)
		}
	}
	may("PTRACE_DETACH", call(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid)))
	// These fail for another reason than the filter.
	if errno := call(unix.SYS_BPF, unix.BPF_LINK_CREATE, 0, 0); errno == 0 {
		fmt.Println("failed: a link of nothing")
	}
	if f, err := os.CreateTemp("", ""); err != nil {
		fmt.Println("failed:", err)
	} else {
		os.Remove(f.Name())
	}
}

// A process that records can, on none of its threads, do what recording does not take; what it takes,
// it can do.
func TestSampler(t *testing.T) {
	out := inAnother(t, "sampling")
	threads := 0
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch f[0] {
		case "CapEff:", "CapPrm:":
			var n uint64
			if _, err := fmt.Sscanf(f[1], "%x", &n); err != nil || n != (Sampler{}).Kept(held(t)) {
				t.Errorf("a thread has %s", line)
			}
			threads++
		case "NoNewPrivs:":
			if f[1] != "1" {
				t.Errorf("a thread has %s", line)
			}
		case "Seccomp:":
			if f[1] != "2" {
				t.Skipf("no seccomp filters here: %s", line)
			}
		default:
			t.Error(line)
		}
	}
	if threads < 2*5 {
		t.Errorf("%d threads in\n%s", threads/2, out)
	}
}

// held returns the capabilities of the test.
func held(t *testing.T) uint64 {
	t.Helper()
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if err := unix.Capget(&h, &d[0]); err != nil {
		t.Fatal(err)
	}
	return uint64(d[0].Effective) | uint64(d[1].Effective)<<32
}

// The capabilities that are kept depend on those that there are: an old kernel has only CAP_SYS_ADMIN for much, and who may
// trace by having the same capabilities only must not lose any.
func TestKept(t *testing.T) {
	const all = 1<<41 - 1
	for _, c := range []struct {
		name string
		s    Sampler
		held uint64
		keep uint64
	}{
		{"root", Sampler{}, all, looks},
		{"root with a program", Sampler{Launched: true}, all, looks | 1<<unix.CAP_KILL},
		{"root with a probe", Sampler{Admin: true}, all, looks | admin},
		{"root before Linux 5.8", Sampler{}, 1<<38 - 1, looks&(1<<38-1) | admin},
		{"root in Docker", Sampler{}, 0xa80425fb, 0xa80425fb},
		{"four capabilities", Sampler{}, instead&^(1<<unix.CAP_CHECKPOINT_RESTORE) | ptraces, instead&^(1<<unix.CAP_CHECKPOINT_RESTORE) | ptraces},
		{"none", Sampler{}, 0, 0},
	} {
		if got := c.s.Kept(c.held); got != c.keep {
			t.Errorf("%s: %#x is kept, %d capabilities; want %#x", c.name, got, bits.OnesCount64(got), c.keep)
		}
	}
	if looks&(1<<unix.CAP_SYS_ADMIN|1<<unix.CAP_SETUID|1<<unix.CAP_CHOWN|1<<unix.CAP_NET_ADMIN|1<<unix.CAP_SYS_MODULE|1<<unix.CAP_SETPCAP) != 0 {
		t.Errorf("%#x", looks)
	}
}
