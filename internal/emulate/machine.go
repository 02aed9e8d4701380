// Package emulate executes what a thread would do next, from a copy of its registers and its stack,
// outside the process that it belongs to. Nothing in that process is stopped or changed.
//
// Memory other than the stack is read when it is needed, which is later than the copy was made;
// what depends on it is marked. What is not known at all stays unknown, and the first branch that
// depends on it ends the trace.
package emulate

import (
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/emulate/simd"
	"golang.org/x/arch/x86/x86asm"
)

// Space is what a process holds, all of which it controls.
type Space interface {
	// Code fills p with machine code from pc on that comes from a file, and returns how many bytes
	// there were.
	Code(pc uint64, p []byte) int
	// Bytes fills p from addr; false unless all of it could be read.
	Bytes(addr uint64, p []byte) bool
	// Fixed reports whether memory at addr cannot change.
	Fixed(addr uint64) bool
}

// Branch is a taken jump, call or return.
type Branch struct {
	From, To uint64 // the addresses of the branch and of its target
	// End is the address of the last instruction of the run that begins at To: the next branch that
	// was taken, or the instruction at which the trace ended.
	End uint64
	// Late says that the way there depended on memory that was read after the copy was made.
	Late bool
	// reads is how many words had been read late.
	reads int
	// Last says that no further branch is known: End ends the trace.
	Last bool
}

// Why is the reason for which a trace ended.
type Why uint8

// The reasons.
const (
	Limit     Why = iota // as many instructions or branches as a trace may have
	Unknown              // a branch depends on something that is not known
	Opaque               // an instruction that is not executed: a system call, or not known
	NoCode               // code that no file has, or that cannot be read
	Fault                // an instruction that would have failed
	Unstarted            // the registers are not known, or it is another processor
	NumWhys
)

var whyTexts = [NumWhys]string{
	"at their greatest length", "at what is not known", "at instructions that are not executed", "at code without a file", "at a fault", "before they began",
}

// Text says for people where a trace ended.
func (w Why) Text() string { return whyTexts[min(w, NumWhys-1)] }

// Bounds of a trace.
const (
	MaxInstructions = 600
	MaxBranches     = 64
)

// Machine executes traces. It is not safe for concurrent use.
type Machine struct {
	Branches []Branch // of the last trace; valid until the next one
	Steps    int      // instructions that it executed
	At       uint64   // the address of the instruction at which it ended

	code  *Code
	space Space
	state
	mem  memory
	call simd.Call

	late  bool // the way depends on memory that was read late
	ended bool
	why   Why
}

// state is the registers. The bits of a mask of bytes say which bytes are known.
type state struct {
	pc    uint64
	r     [16]uint64
	known [16]uint8
	lateR uint16 // registers that depend on memory that was read late
	vectors
	flags    uint64
	flagsOK  uint64 // flags that are known
	lateF    bool
	branched bool // pc was set by the instruction
}

// Flags (Intel SDM volume 1, 3.4.3).
const (
	carry     = 1 << 0
	parity    = 1 << 2
	zero      = 1 << 6
	sign      = 1 << 7
	direction = 1 << 10
	overflow  = 1 << 11
	allFlags  = carry | parity | zero | sign | overflow
)

// hardware maps DWARF numbers of registers to hardware numbers.
var hardware = [16]uint8{
	cpu.RAX: 0, cpu.RCX: 1, cpu.RDX: 2, cpu.RBX: 3, cpu.RSP: 4, cpu.RBP: 5, cpu.RSI: 6, cpu.RDI: 7,
	cpu.R8: 8, cpu.R9: 9, cpu.R10: 10, cpu.R11: 11, cpu.R12: 12, cpu.R13: 13, cpu.R14: 14, cpu.R15: 15,
}

const rsp, rbp = 4, 5

// Trace continues the thread of a snapshot, and returns why it ended.
func (m *Machine) Trace(snap *capture.Snapshot, code *Code, space Space, near *Nearby) Why {
	m.Branches, m.Steps, m.At = m.Branches[:0], 0, snap.Regs.PC
	m.late, m.ended = false, false
	if snap.Regs.Arch != cpu.AMD64 || snap.Regs.PC == 0 {
		return Unstarted
	}
	m.code, m.space = code, space
	m.state = state{pc: snap.Regs.PC, flagsOK: direction}
	if snap.Regs.FlagsKnown {
		m.flags, m.flagsOK = snap.Regs.Flags, allFlags|direction
	}
	for dwarf, n := range hardware {
		if snap.Regs.Known>>dwarf&1 != 0 {
			m.r[n], m.known[n] = snap.Regs.R[dwarf], 0xff
		}
	}
	m.mem.begin(snap, space, near)
	for m.Steps < MaxInstructions && !m.ended {
		o := code.at(m.pc, space)
		if o == nil {
			m.end(NoCode)
			break
		}
		m.At, m.branched = o.pc, false
		m.step(o)
		if m.ended {
			break
		}
		m.Steps++
		if m.branched {
			if len(m.Branches) == MaxBranches {
				break
			}
			m.took(o.pc, m.pc)
		} else {
			m.pc = o.next
		}
	}
	if !m.ended {
		m.why = Limit
	}
	if n := len(m.Branches); n > 0 {
		m.Branches[n-1].End, m.Branches[n-1].Last = m.At, true
		if m.At == m.Branches[n-1].From {
			m.Branches[n-1].End = m.Branches[n-1].To // nothing was executed there
		}
	}
	return m.why
}

// took notes a taken branch.
func (m *Machine) took(from, to uint64) {
	if n := len(m.Branches); n > 0 {
		m.Branches[n-1].End = from
	}
	m.Branches = append(m.Branches, Branch{From: from, To: to, Late: m.late, reads: len(m.mem.reads)})
}

// end ends the trace before the instruction.
func (m *Machine) end(why Why) { m.ended, m.why = true, why }

// step executes an instruction.
func (m *Machine) step(o *op) {
	switch o.is {
	case nop:
	case opaque:
		m.end(Opaque)
	case conditionalJump:
		taken, ok := m.test(o.cond)
		if !ok {
			m.end(Unknown)
			return
		}
		m.late = m.late || m.lateF
		if taken {
			m.jump(o.target)
		}
	case conditionalMove:
		m.conditionalMove(o)
	case conditionalSet:
		v, ok := m.test(o.cond)
		m.set(&o.args[0], o, value{bit(v), mask(ok), m.lateF})
	case stringOp:
		m.strings(o)
	case vectorOp:
		m.vector(o)
	case upperHalves:
		m.zeroUpper(16 * int(bit(o.code == x86asm.VZEROUPPER)))
	case extension:
		m.extension(o)
	case maskOp:
		m.masks(o)
	case clobber:
		m.clobber(o)
	case loop:
		m.loop(o)
	default:
		m.integer(o)
	}
}

// jump goes on at an address.
func (m *Machine) jump(to uint64) { m.pc, m.branched = to, true }

// jumpTo goes on at an address that was computed.
func (m *Machine) jumpTo(v value) {
	if v.known != 0xff {
		m.end(Unknown)
		return
	}
	m.late = m.late || v.late
	m.jump(v.v)
}

// test evaluates a condition; ok is false if a flag is not known.
func (m *Machine) test(cond uint8) (is, ok bool) {
	var need uint64
	f := m.flags
	switch cond >> 1 {
	case 0:
		need, is = overflow, f&overflow != 0
	case 1:
		need, is = carry, f&carry != 0
	case 2:
		need, is = zero, f&zero != 0
	case 3:
		need, is = carry|zero, f&(carry|zero) != 0
	case 4:
		need, is = sign, f&sign != 0
	case 5:
		need, is = parity, f&parity != 0
	case 6:
		need, is = sign|overflow, f&sign != 0 != (f&overflow != 0)
	case 7:
		need, is = zero|sign|overflow, f&zero != 0 || f&sign != 0 != (f&overflow != 0)
	}
	if m.flagsOK&need != need {
		return false, false
	}
	return is != (cond&1 != 0), true
}

// conditionalMove moves the second operand to the first, if the condition holds.
func (m *Machine) conditionalMove(o *op) {
	a, b := &o.args[0], &o.args[1]
	taken, ok := m.test(o.cond)
	v := m.get(a, o)
	if !ok {
		v.known = 0
	} else if taken {
		v = m.get(b, o)
	}
	v.late = v.late || m.lateF
	m.set(a, o, v)
}
