package kallsyms

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestSyscallName(t *testing.T) {
	for nr, want := range map[int]string{
		unix.SYS_READ: "read", unix.SYS_FUTEX: "futex", unix.SYS_EPOLL_PWAIT: "epoll_pwait",
		unix.SYS_CLOCK_NANOSLEEP: "clock_nanosleep", -1: "syscall -1", 1 << 20: "syscall 1048576",
	} {
		if got := SyscallName(nr); got != want {
			t.Errorf("system call %d is called %q, want %q", nr, got, want)
		}
	}
}
