package oracle

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Offset of the debug registers in struct user (sys/user.h): u_debugreg.
const (
	debugRegisters = 848
	debugControl   = debugRegisters + 7*8
)

// InCall reports whether the thread has just executed a call: StepOut may follow.
func (t *Tracer) InCall() bool {
	n := len(t.shadow.entries)
	return !t.running && t.executed.Call && n > 0 && t.shadow.entries[n-1].SP == t.regs.Rsp && t.signal == 0
}

// StepOut lets the thread run freely until the call that it has just executed has returned, by a
// breakpoint in a debug register, and counts as one step. A thread that does not return within the
// Tracer's patience is stopped where it is, and stepping continues there.
func (t *Tracer) StepOut() error {
	if !t.InCall() {
		return t.Step()
	}
	patience := t.Patience
	defer func() { t.Patience = patience }()
	t.Patience = min(patience, outPatience)
	top := t.shadow.entries[len(t.shadow.entries)-1]
	if err := t.pokeUser(debugRegisters, top.RA); err != nil {
		return err
	}
	for begun := time.Now(); ; {
		// Enabled for this thread; 0 in the upper bits: break on execution.
		if err := t.pokeUser(debugControl, 1); err != nil {
			return err
		}
		err := t.resume()
		if errors.Is(err, ErrBlocked) {
			err = t.interrupt()
			top.RA = 0 // wherever it stopped
		}
		if err != nil {
			return err
		}
		if err := t.pokeUser(debugControl, 0); err != nil {
			return err
		}
		switch {
		case t.signal != 0: // the signal is to be delivered
			// A thread that detects null by faults has one fault after the other.
			if time.Since(begun) > t.Patience {
				return t.leftCall(top.SP)
			}
		case top.RA == 0 || t.regs.Rip != top.RA:
			return t.leftCall(top.SP)
		case t.regs.Rsp > top.SP:
			return t.leftCall(top.SP)
		default: // the same place in a deeper call
			if err := t.single(); err != nil {
				return err
			}
			if time.Since(begun) > t.Patience { // a recursion may come here a million times
				return t.leftCall(top.SP)
			}
		}
	}
}

// outPatience is how long StepOut waits for a return. Virtual machines now and then lose
// breakpoints in debug registers: the thread then runs on, and is stopped somewhere else.
const outPatience = 50 * time.Millisecond

// leftCall updates the shadow stack after StepOut has left the call whose return address lay at sp.
// Unless the thread has just returned from that very call, it has made other calls that were not
// seen, and the shadow stack is cleared.
func (t *Tracer) leftCall(sp uint64) error {
	t.steps++
	t.executed = Instruction{PC: t.regs.Rip}
	if t.regs.Rsp != sp+8 || !t.onStack() {
		t.shadow = shadow{}
		return nil
	}
	before := t.regs
	t.executed.Ret = true // none of the removed entries was popped into a register
	t.follow(&before, 0)
	return nil
}

// onStack reports whether the return addresses of the shadow stack's innermost entries still lie on
// the stack. A thread that missed a breakpoint may come back to the same place at the same depth,
// called by others.
func (t *Tracer) onStack() bool {
	n := len(t.shadow.entries) - 1 // the innermost is the call that was left
	for i := n - 1; i >= max(n-32, 0); i-- {
		e := &t.shadow.entries[i]
		if e.Interrupted {
			continue // not a return address: a signal made this entry
		}
		if ra, ok := t.mem.Word(e.SP); !ok || ra != e.RA {
			return false
		}
	}
	return true
}

// resume lets the thread run until it stops by itself.
func (t *Tracer) resume() error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_CONT, uintptr(t.tid), 0, uintptr(t.signal), 0, 0); e != 0 {
		return fmt.Errorf("ptrace continue thread %d: %w", t.tid, e)
	}
	t.signal = 0
	t.running, t.prompt = true, false
	return t.wait()
}

// single executes one instruction without decoding it.
func (t *Tracer) single() error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SINGLESTEP, uintptr(t.tid), 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("ptrace singlestep thread %d: %w", t.tid, e)
	}
	t.running, t.prompt = true, false
	return t.wait()
}

func (t *Tracer) pokeUser(offset int, v uint64) error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_POKEUSR, uintptr(t.tid), uintptr(offset), uintptr(v), 0, 0); e != 0 {
		return fmt.Errorf("set a debug register of thread %d: %w", t.tid, e)
	}
	return nil
}
