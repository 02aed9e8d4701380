package target

import (
	"errors"
	"fmt"
)

// The sentinels that the errors of this package wrap.
var (
	ErrNoProcess    = errors.New("no such process")
	ErrPermission   = errors.New("not permitted")
	ErrZombie       = errors.New("the process has ended")
	ErrKernelThread = errors.New("it is a kernel thread")
	ErrMemory       = errors.New("memory is not readable")
	ErrFormat       = errors.New("malformed data")
	ErrStale        = errors.New("the file is no longer the one that was mapped")
	ErrUnsupported  = errors.New("not supported here")
	ErrFiles        = errors.New("too many open files")
)

// Reason is why a process cannot be examined.
type Reason uint8

// The reasons.
const (
	ReasonNone         Reason = iota
	ReasonNoProcess           // there is no process with this id
	ReasonHidden              // it exists, but /proc is mounted so that it is not shown (hidepid)
	ReasonKernelThread        // a thread of the kernel, it has no program
	ReasonZombie              // it has ended and waits for its parent
	ReasonOtherUser           // it runs as another user and CAP_SYS_PTRACE is missing
	ReasonCapabilities        // same user, but it holds capabilities or is not dumpable
	ReasonYama                // kernel.yama.ptrace_scope restricts the same user too
	ReasonPolicy              // a seccomp or security module rule
	ReasonSystem              // this operating system
	ReasonNotAdmin            // Windows: another user's, or at a higher integrity level
	ReasonProtected           // Windows: a protected process
	ReasonMachine             // its code is for another processor, as that of a 32-bit program
	ReasonFiles               // candid may open no more files
	numReasons
)

var reasons = [numReasons]struct {
	text string
	err  error
}{
	ReasonNone:         {"it can be profiled", nil},
	ReasonNoProcess:    {"no such process", ErrNoProcess},
	ReasonHidden:       {"hidden: /proc is mounted with hidepid; run as root", ErrPermission},
	ReasonKernelThread: {"kernel thread: it runs no program", ErrKernelThread},
	ReasonZombie:       {"zombie: it has ended and waits for its parent", ErrZombie},
	ReasonOtherUser:    {"it runs as another user; run as that user or with CAP_SYS_PTRACE", ErrPermission},
	ReasonCapabilities: {"it is privileged or not dumpable; run with CAP_SYS_PTRACE", ErrPermission},
	ReasonYama:         {"kernel.yama.ptrace_scope forbids it; run with CAP_SYS_PTRACE or set it to 0", ErrPermission},
	ReasonPolicy:       {"a security rule (seccomp, SELinux, AppArmor) forbids it", ErrPermission},
	ReasonSystem:       {"candid cannot look into processes on this system yet", ErrUnsupported},
	ReasonNotAdmin:     {"it runs as another user or at a higher level; run candid as administrator", ErrPermission},
	ReasonProtected:    {"it is a protected process: Windows lets no program look into it", ErrPermission},
	ReasonFiles:        {"candid may open no more files; before starting it, allow it more (ulimit -n 1024)", ErrFiles},
	ReasonMachine:      {"it is a 32-bit program, or for another processor: candid reads programs of its own processor", ErrUnsupported},
}

// String returns the reason in a few words, with what to do.
func (r Reason) String() string {
	if r < numReasons {
		return reasons[r].text
	}
	return "unknown reason"
}

// AccessError says that a process cannot be examined, and why. It wraps one of ErrNoProcess,
// ErrPermission, ErrZombie, ErrKernelThread, ErrFiles and ErrUnsupported.
type AccessError struct {
	PID    int
	Reason Reason
	UID    int // the user that it runs as, -1 if unknown
}

// Error returns one line for the user.
func (e *AccessError) Error() string {
	if e.Reason == ReasonOtherUser && e.UID >= 0 {
		return fmt.Sprintf("process %d: it runs as another user (uid %d); run as that user or with CAP_SYS_PTRACE", e.PID, e.UID)
	}
	return fmt.Sprintf("process %d: %s", e.PID, e.Reason)
}

// Unwrap returns the sentinel.
func (e *AccessError) Unwrap() error {
	if e.Reason < numReasons {
		return reasons[e.Reason].err
	}
	return nil
}
