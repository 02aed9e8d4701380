// Package simulate executes the next few instructions of a thread that was copied, on the copy, to
// find where the thread continues: a HotSpot virtual machine's interpreter and stubs take frames off
// in the middle of their code. Nothing is executed that is not a push, a pop or a move.
package simulate

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// Thread is the registers and the stack of a thread of x86-64 as they will be after its next few
// instructions. It is used again for one thread after the other, so that it does not allocate.
type Thread struct {
	c     *walk.Cursor
	regs  [cpu.NumRegs]uint64 // as they will be afterwards
	known uint32
	// stores is the words that will be on the stack. Below fresh nothing is written yet, so only
	// the stores count there.
	fresh  uint64
	stores []storedWord
	// aligned says that the stack pointer was rounded down to 16, which moves it by a word.
	aligned bool
}

// storedWord is a word that is put on the stack.
type storedWord struct {
	at, value uint64
	ok        bool // it is known
}

// maxStores bounds the words that are put on the stack.
const maxStores = 64

const (
	// maxMove bounds by how much one instruction may move the stack pointer, in bytes.
	maxMove = 4096
	// maxTaken bounds by how much the caller's stack pointer may be above the thread's, in bytes: a
	// method's locals.
	maxTaken = 65536 * 8
	// preserved are the registers that the functions of C preserve.
	preserved = 1<<cpu.RBX | 1<<cpu.RBP | 1<<cpu.RSP | 0xf<<cpu.R12
)

// Caller is where a thread continues.
type Caller struct {
	RA, SP, FP uint64
}

// Begin starts at the instruction where the thread at the Cursor was stopped, in its innermost frame.
func (x *Thread) Begin(c *walk.Cursor) {
	x.c, x.regs, x.known, x.fresh, x.stores, x.aligned = c, c.Regs.R, c.Regs.Known, c.Regs.SP(), x.stores[:0], false
}

// SP returns the stack pointer as it will be; false if it is not known.
func (x *Thread) SP() (uint64, bool) { return x.regs[cpu.RSP], x.has(cpu.RSP) }

func (x *Thread) has(reg uint8) bool { return x.known>>reg&1 != 0 }

func (x *Thread) put(reg uint8, v uint64, ok bool) {
	if x.known &^= 1 << reg; ok {
		x.regs[reg] = v
		x.known |= 1 << reg
	}
}

// store puts a register on the stack; false if there are too many.
func (x *Thread) store(at uint64, reg uint8, isReg bool) bool {
	if !x.has(cpu.RSP) || len(x.stores) == maxStores {
		return false
	}
	x.stores = append(x.stores, storedWord{at: at, value: x.regs[reg], ok: isReg && x.has(reg)})
	return true
}

// Word returns a word of the stack as it will be; false if it is not known.
func (x *Thread) Word(at uint64) (uint64, bool) {
	for i := len(x.stores) - 1; i >= 0; i-- {
		if w := &x.stores[i]; w.at == at {
			return w.value, w.ok
		}
	}
	if at >= x.fresh {
		return x.c.Word(at)
	}
	return 0, false
}

// Jump returns where a jump by register goes, with the stack that it leaves.
func (x *Thread) Jump(inst *x86asm.Inst) (f Caller, ok bool) {
	reg, isReg := RegisterOf(inst.Args[0])
	if !isReg || !x.has(reg) {
		return f, false
	}
	return x.Continue(x.regs[reg], x.regs[cpu.RSP])
}

// Return returns where a return goes.
func (x *Thread) Return() (f Caller, ok bool) {
	if ra, read := x.Word(x.regs[cpu.RSP]); read {
		return x.Continue(ra, x.regs[cpu.RSP]+8)
	}
	return f, false
}

// Continue returns the caller at ra whose stack pointer is sp; false if that makes no sense.
func (x *Thread) Continue(ra, sp uint64) (f Caller, ok bool) {
	from := x.c.Regs.SP()
	if x.aligned && sp+8 == from {
		sp = from
	}
	ok = x.has(cpu.RSP) && x.has(cpu.RBP) && sp >= from && sp-from <= maxTaken && sp&7 == 0
	return Caller{RA: ra, SP: sp, FP: x.regs[cpu.RBP]}, ok
}

// Do executes one instruction that is not a jump or return; false if it changes the stack or the
// frame pointer in a way that is not understood. Branches are not taken: rare cases are out of
// line.
func (x *Thread) Do(inst *x86asm.Inst) bool {
	to, isReg := RegisterOf(inst.Args[0])
	switch inst.Op {
	case x86asm.CMP, x86asm.TEST:
		return true
	case x86asm.XCHG, x86asm.XADD:
		return x.forget(inst.Args[0]) && x.forget(inst.Args[1])
	case x86asm.CALL:
		// Callees preserve these.
		x.known &= preserved
		return x.has(cpu.RSP)
	case x86asm.PUSH:
		x.regs[cpu.RSP] -= 8
		return x.store(x.regs[cpu.RSP], to, isReg)
	case x86asm.PUSHFQ:
		x.regs[cpu.RSP] -= 8
		return x.store(x.regs[cpu.RSP], 0, false)
	case x86asm.POPFQ:
		x.regs[cpu.RSP] += 8
		return x.has(cpu.RSP)
	case x86asm.POP:
		if !isReg || to == cpu.RSP || !x.has(cpu.RSP) {
			return false
		}
		v, ok := x.Word(x.regs[cpu.RSP])
		x.regs[cpu.RSP] += 8
		x.put(to, v, ok)
		return true
	case x86asm.LEAVE:
		if !x.has(cpu.RBP) {
			return false
		}
		v, ok := x.Word(x.regs[cpu.RBP])
		x.put(cpu.RSP, x.regs[cpu.RBP]+8, true)
		x.put(cpu.RBP, v, ok)
		return ok
	case x86asm.SUB, x86asm.ADD, x86asm.LEA:
		if isReg && to == cpu.RSP {
			return x.moveStack(inst)
		}
	case x86asm.AND:
		if mask, isImm := inst.Args[1].(x86asm.Imm); isReg && to == cpu.RSP && isImm && mask == -16 {
			x.regs[cpu.RSP] &^= 15
			x.aligned = true
			return x.has(cpu.RSP)
		}
	case x86asm.MOV:
		from, fromReg := RegisterOf(inst.Args[1])
		if isReg && fromReg {
			x.put(to, x.regs[from], x.has(from))
			return true
		}
		if at, ok := x.onStack(inst.Args[1]); ok && isReg && to != cpu.RSP {
			v, ok := x.Word(at)
			x.put(to, v, ok)
			return true
		}
		if at, ok := x.onStack(inst.Args[0]); ok && inst.MemBytes == 8 {
			return x.store(at, from, fromReg)
		}
	}
	return x.forget(inst.Args[0])
}

// moveStack executes an instruction that moves the stack pointer by a constant.
func (x *Thread) moveStack(inst *x86asm.Inst) bool {
	n, ok := inst.Args[1].(x86asm.Imm)
	if m, isMem := inst.Args[1].(x86asm.Mem); isMem && m.Base == x86asm.RSP && m.Index == 0 {
		n, ok = x86asm.Imm(m.Disp), true
	}
	if !ok || !x.has(cpu.RSP) || n > maxMove || n < -maxMove {
		return false
	}
	if inst.Op == x86asm.SUB {
		n = -n
	}
	x.regs[cpu.RSP] += uint64(n)
	return true
}

// onStack returns the address of an operand that lies at a distance from the stack pointer.
func (x *Thread) onStack(a x86asm.Arg) (at uint64, ok bool) {
	m, ok := a.(x86asm.Mem)
	if !ok || m.Base != x86asm.RSP || m.Index != 0 || !x.has(cpu.RSP) {
		return 0, false
	}
	return x.regs[cpu.RSP] + uint64(m.Disp), true
}

// forget notes that a register, or a part of it, holds an unknown value. It returns false for
// registers that must be known.
func (x *Thread) forget(a x86asm.Arg) bool {
	r, ok := a.(x86asm.Reg)
	var to uint8
	switch {
	case !ok || r > x86asm.R15:
		return true // memory or a vector
	case r >= x86asm.AX:
		to = dwarfNumbers[(r-x86asm.AX)%16]
	case r >= x86asm.SPB:
		to = dwarfNumbers[r-x86asm.SPB+4]
	default:
		to = dwarfNumbers[(r-x86asm.AL)%4]
	}
	if to == cpu.RSP || to == cpu.RBP {
		return false
	}
	x.put(to, 0, false)
	return true
}

// RegisterOf returns the DWARF number of a whole general register.
func RegisterOf(a x86asm.Arg) (uint8, bool) {
	r, ok := a.(x86asm.Reg)
	if !ok || r < x86asm.RAX || r > x86asm.R15 {
		return 0, false
	}
	return dwarfNumbers[r-x86asm.RAX], true
}

var dwarfNumbers = [16]uint8{
	cpu.RAX, cpu.RCX, cpu.RDX, cpu.RBX, cpu.RSP, cpu.RBP, cpu.RSI, cpu.RDI,
	cpu.R8, cpu.R9, cpu.R10, cpu.R11, cpu.R12, cpu.R13, cpu.R14, cpu.R15,
}
