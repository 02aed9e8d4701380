package kernel

import (
	"runtime"
	"testing"
)

func TestSyscallName(t *testing.T) {
	futex, newest := 202, 999
	if runtime.GOARCH == "arm64" {
		futex = 98
	}
	if got := SyscallName(futex); got != "futex" {
		t.Errorf("call %d is %q, not futex", futex, got)
	}
	if got := SyscallName(newest); got != "syscall 999" {
		t.Errorf("a call that there is not is %q", got)
	}
	if got := SyscallName(-1); got != "" {
		t.Errorf("no call is %q", got)
	}
}
