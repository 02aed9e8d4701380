package target

import (
	"fmt"
	"syscall"
)

// Outcome is how a process ended. The zero value means unknown.
type Outcome struct {
	Known  bool
	Code   int            // exit code, if no signal ended it
	Signal syscall.Signal // the signal that killed it, else 0
}

// OutcomeOf decodes a wait status (wait(2)).
func OutcomeOf(status uint32) Outcome {
	o := Outcome{Known: true, Signal: syscall.Signal(status & 0x7f)}
	if o.Signal == 0 {
		o.Code = int(status >> 8 & 0xff)
	}
	return o
}

// Killed reports whether a signal ended it.
func (o Outcome) Killed() bool { return o.Known && o.Signal != 0 }

// String returns a predicate for the name of the process: "was killed by SIGKILL".
func (o Outcome) String() string {
	switch {
	case !o.Known:
		return "ended"
	case o.Signal != 0:
		return "was killed by " + o.SignalName()
	}
	if o.Code >= crashed {
		return fmt.Sprintf("was ended by exception %#x", o.Code)
	}
	return fmt.Sprintf("exited with code %d", o.Code)
}

// crashed is the first of the exit codes with which Windows ends a program for an exception: NTSTATUS
// of the severity "error".
const crashed = 0xc0000000

// SignalName returns the signal that killed it, such as "SIGKILL"; "" if none did.
func (o Outcome) SignalName() string {
	if o.Signal == 0 {
		return ""
	}
	return signalName(o.Signal)
}

// Witness finds out from outside how a process ended. The kernel reliably reports that only to its
// parent; to others while the process is a zombie, and from Linux 6.15 on to holders of a pidfd.
type Witness struct {
	PID  int
	told Outcome
	sys  witnessSystem
}
