package oracle

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Entry is one frame's return address, as the call that made the frame stored it.
type Entry struct {
	// SP is the address of the return address on the stack.
	SP uint64
	// RA is the address at which the caller continues.
	RA uint64
	// Interrupted says that a signal made this entry, not a call; RA is the very instruction that
	// will be executed next, and SP is only for ordering.
	Interrupted bool
	// Region is the end of the mapping that the stack lies in.
	Region uint64
}

// looseSteps is for how many instructions a return address that was popped without a return is
// remembered, in case it is put back (generated code pops its own return address into a register
// and pushes it again).
const looseSteps = 256

// shadow is the stack of the calls that have been executed and not returned from.
type shadow struct {
	entries []Entry // outermost first
	loose   []Entry // popped, but not by a return; outermost first
	looseAt uint64  // the step at which the last of them was popped
	backAt  uint64  // the step at which the last of them was put back; 0: there was a call since
	whole   bool    // kept from the thread's first instruction on
}

// Callers returns the calls that have been executed and not returned from, outermost first. The
// slice is valid until the next step.
func (t *Tracer) Callers() []Entry { return t.shadow.entries }

// Whole reports whether Callers goes back to the thread's first instruction.
func (t *Tracer) Whole() bool { return t.shadow.whole }

// Loose returns the return addresses that were popped by other means than a return within the last
// few instructions, outermost first. If the program carries its return address in a register, the
// true caller is the last of these.
func (t *Tracer) Loose() []Entry {
	if t.steps-t.shadow.looseAt > looseSteps {
		return nil
	}
	return t.shadow.loose
}

// Caller returns the innermost entry, with what its slot on the stack holds now: a runtime may have
// patched it (HotSpot's deoptimisation does).
func (t *Tracer) Caller() (Entry, bool) {
	n := len(t.shadow.entries)
	if n == 0 {
		return Entry{}, false
	}
	e := t.shadow.entries[n-1]
	if !e.Interrupted {
		if v, ok := t.mem.Word(e.SP); ok {
			e.RA = v
		}
	}
	return e, true
}

// follow updates the shadow stack after a step.
func (t *Tracer) follow(before *unix.PtraceRegs, delivered int) {
	s := &t.shadow
	sp := t.regs.Rsp
	region := t.regions.find(sp)

	if delivered != 0 && t.regs.Rip != before.Rip && t.handlerEntered(before) {
		ra, _ := t.mem.Word(sp)
		s.entries = append(s.entries,
			Entry{SP: before.Rsp - 1, RA: before.Rip, Interrupted: true, Region: t.regions.find(before.Rsp)},
			Entry{SP: sp, RA: ra, Region: region})
		return
	}

	// Everything below the stack pointer is gone: by a return, a longjmp, or a handler's end. A
	// stack pointer in another mapping is another stack; if calls on that stack are known, the
	// thread has come back to it.
	n := len(s.entries)
	if n > 0 && s.entries[n-1].Region != region {
		for back := n - 1; back >= 0; back-- {
			if s.entries[back].Region == region {
				n = back + 1
				break
			}
		}
	}
	for n > 0 && s.entries[n-1].Region == region && s.entries[n-1].SP < sp {
		n--
	}
	if gone := s.entries[n:]; len(gone) > 0 {
		if !t.StaysPopped && !t.executed.Ret && len(gone) <= 4 {
			if t.steps-s.looseAt > looseSteps {
				s.loose = s.loose[:0]
			}
			if len(s.loose) < 16 {
				s.loose = append(s.loose, gone...)
			}
			s.looseAt = t.steps
		}
		s.entries = s.entries[:n]
	}
	if s.backAt != 0 {
		t.moveDown(sp, region)
	}
	if len(s.loose) > 0 {
		t.putBack(sp, region)
	}

	if t.executed.Call && sp == before.Rsp-8 {
		ra, ok := t.mem.Word(sp)
		// A call stores the address of the instruction after it: if the stack holds anything else,
		// the call was not executed (a fault, a signal in between).
		if ok && ra-before.Rip >= 2 && ra-before.Rip <= 15 {
			s.entries = append(s.entries, Entry{SP: sp, RA: ra, Region: region})
			s.backAt = 0
		}
	}
}

// movedWithin is for how many steps after a return address is in its old place on the stack again
// it may still be stored to its new place.
const movedWithin = 32

// moveDown notes that a return address that was popped into a register was stored below its old
// place, to make room. The old place still holds it for a while.
func (t *Tracer) moveDown(sp, region uint64) {
	s := &t.shadow
	n := len(s.entries)
	if n == 0 || t.steps-s.backAt > movedWithin || s.entries[n-1].Region != region {
		s.backAt = 0
		return
	}
	e := &s.entries[n-1]
	if v, ok := t.mem.Word(sp); ok && sp < e.SP && v == e.RA {
		e.SP = sp
		s.backAt = 0
	}
}

// putBack restores loose entries that are on the stack again, and forgets those
// that have been jumped to.
func (t *Tracer) putBack(sp, region uint64) {
	s := &t.shadow
	if t.steps-s.looseAt > looseSteps {
		s.loose = s.loose[:0]
		return
	}
	for len(s.loose) > 0 {
		e := s.loose[len(s.loose)-1]
		if t.regs.Rip == e.RA {
			s.loose = s.loose[:0]
			return
		}
		if e.Region != region || e.SP < sp {
			return
		}
		// If room is made over what is left of it, nothing is put back: a return address that is
		// stored again comes from a register.
		if !t.holds(e.RA) {
			return
		}
		v, ok := t.mem.Word(e.SP)
		if !ok || v != e.RA {
			return
		}
		s.entries = append(s.entries, e)
		s.loose = s.loose[:len(s.loose)-1]
		s.backAt = t.steps
	}
}

// holds reports whether a general register holds a value.
func (t *Tracer) holds(v uint64) bool {
	r := &t.regs
	return slices.Contains([]uint64{r.Rax, r.Rbx, r.Rcx, r.Rdx, r.Rsi, r.Rdi, r.Rbp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15}, v)
}

// handlerEntered reports whether the step delivered a signal to a handler: the kernel sets the
// stack pointer 8 bytes below a 16-byte boundary, to the restorer's address, with the interrupted
// registers in a frame above it.
func (t *Tracer) handlerEntered(before *unix.PtraceRegs) bool {
	if t.regs.Rsp%16 != 8 {
		return false
	}
	// struct rt_sigframe: the return address, then ucontext; its registers start
	// at 40, the stack pointer is the 16th of them and the pc the 17th.
	sp, ok1 := t.mem.Word(t.regs.Rsp + 8 + 40 + 15*8)
	pc, ok2 := t.mem.Word(t.regs.Rsp + 8 + 40 + 16*8)
	return ok1 && ok2 && sp == before.Rsp && pc == before.Rip
}
