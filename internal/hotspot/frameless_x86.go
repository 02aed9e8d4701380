package hotspot

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
)

// Some methods have an entry of their own in the interpreter that does their work
// without a frame: Math.sin, CRC32.update, Reference.get, Thread.currentThread. Where a
// collector's barrier is in it, the entry also pushes registers and calls the VM
// (cpu/x86/templateInterpreterGenerator_x86.cpp, generate_Reference_get_entry, and
// load_at of the collectors' BarrierSetAssemblers). The frame pointer is the caller's
// all the while. So what is left of the entry is done here, up to the jump to the
// caller.

const (
	maxFrameless     = 160 // instructions
	maxFramelessCode = 1024
)

// ownEntry is in the names of such entries (AbstractInterpreter::print_method_kind).
const ownEntry = "(kind = java_"

// framelessAt gives the piece of the interpreter that pc lies in if it is a
// method's own entry.
func (vm *VM) framelessAt(pc uint64) *codelet {
	vm.codelets()
	if pc < vm.stepping.framelessLo || pc >= vm.stepping.framelessHi {
		return nil
	}
	if c := vm.codelet(pc); c != nil && c.frameless {
		return c
	}
	return nil
}

// frameless says where a thread goes on that is in a method's own entry, or in code
// called from there.
func (vm *VM) frameless(c *walk.Cursor) (f found, ok bool) {
	if c.Regs.Arch != cpu.AMD64 || c.Mem == nil {
		return f, false
	}
	entry := vm.framelessAt(c.Regs.PC)
	if entry == nil {
		return f, false
	}
	size := entry.hi - c.Regs.PC
	if size > maxFramelessCode {
		return f, false
	}
	code := vm.stepping.entry[:size]
	if !c.Mem.Bytes(c.Regs.PC, code) {
		return f, false
	}
	x := framelessState{leavingState: leavingState{c: c, regs: c.Regs.R, known: c.Regs.Known}, fresh: c.Regs.SP()}
	at := uint64(0)
	for range maxFrameless {
		if at >= size {
			return f, false
		}
		if n := native.VectorLength(code[at:]); n > 0 {
			at += uint64(n)
			continue
		}
		inst, err := x86asm.Decode(code[at:], 64)
		if err != nil {
			return f, false
		}
		at += uint64(inst.Len)
		switch inst.Op {
		case x86asm.JMP:
			if rel, isRel := inst.Args[0].(x86asm.Rel); isRel {
				// Only forwards, so that this ends; what is rare is elsewhere.
				if rel < 0 {
					return f, false
				}
				at += uint64(rel)
				continue
			}
			reg, isReg := registerOf(inst.Args[0])
			if !isReg || !x.has(reg) || !x.has(cpu.RSP) || !x.has(cpu.RBP) {
				return f, false
			}
			f = found{ra: x.regs[reg], sp: x.regs[cpu.RSP], fp: x.regs[cpu.RBP]}
			ok = f.sp >= c.Regs.SP() && f.sp-c.Regs.SP() <= maxLocals && f.sp&7 == 0 && vm.validRA(f.ra)
			return f, ok
		case x86asm.RET:
			if !x.has(cpu.RSP) || !x.has(cpu.RBP) {
				return f, false
			}
			ra, read := x.word(x.regs[cpu.RSP])
			f = found{ra: ra, sp: x.regs[cpu.RSP] + 8, fp: x.regs[cpu.RBP]}
			ok = read && f.sp > c.Regs.SP() && f.sp-c.Regs.SP() <= maxLocals && f.sp&7 == 0 && vm.validRA(f.ra)
			return f, ok
		}
		if !x.do(&inst) {
			return f, false
		}
	}
	return f, false
}

// framelessState are the registers as they will be, and what will be on the stack.
type framelessState struct {
	leavingState
	fresh  uint64 // the stack pointer at the beginning: what is below is yet to be written
	pushed [64]pushed
	pushes int
}

// pushed is a word that was put on the stack since.
type pushed struct {
	at, value uint64
	ok        bool // it is known
}

// store puts a word on the stack; false if there are too many.
func (x *framelessState) store(at uint64, reg uint8, isReg bool) bool {
	if x.pushes == len(x.pushed) {
		return false
	}
	x.pushed[x.pushes] = pushed{at: at, value: x.regs[reg], ok: isReg && x.has(reg)}
	x.pushes++
	return true
}

// word is a word of the stack as it will be.
func (x *framelessState) word(at uint64) (uint64, bool) {
	for i := x.pushes - 1; i >= 0; i-- {
		if p := &x.pushed[i]; p.at == at {
			return p.value, p.ok
		}
	}
	if at >= x.fresh {
		return x.c.Word(at)
	}
	return 0, false
}

// do does one instruction of a method's own entry.
func (x *framelessState) do(inst *x86asm.Inst) bool {
	to, isReg := registerOf(inst.Args[0])
	switch inst.Op {
	case x86asm.CALL:
		// What is called gives these back.
		x.known &= calleeSaved(cpu.AMD64) | 1<<cpu.RSP
		return x.has(cpu.RSP)
	case x86asm.PUSH:
		x.regs[cpu.RSP] -= 8
		return x.has(cpu.RSP) && x.store(x.regs[cpu.RSP], to, isReg)
	case x86asm.PUSHFQ:
		x.regs[cpu.RSP] -= 8
		return x.has(cpu.RSP) && x.store(x.regs[cpu.RSP], 0, false)
	case x86asm.POPFQ:
		x.regs[cpu.RSP] += 8
		return x.has(cpu.RSP)
	case x86asm.POP:
		if !isReg || to == cpu.RSP || !x.has(cpu.RSP) {
			return false
		}
		v, ok := x.word(x.regs[cpu.RSP])
		x.regs[cpu.RSP] += 8
		x.put(to, v, ok)
		return true
	case x86asm.LEAVE:
		if !x.has(cpu.RBP) {
			return false
		}
		v, ok := x.word(x.regs[cpu.RBP])
		x.put(cpu.RSP, x.regs[cpu.RBP]+8, true)
		x.put(cpu.RBP, v, ok)
		return ok
	case x86asm.SUB, x86asm.ADD, x86asm.LEA:
		if !isReg || to != cpu.RSP {
			break
		}
		n, isImm := inst.Args[1].(x86asm.Imm)
		if m, isMem := inst.Args[1].(x86asm.Mem); isMem && m.Base == x86asm.RSP && m.Index == 0 {
			n, isImm = x86asm.Imm(m.Disp), true
		}
		if !isImm || !x.has(cpu.RSP) || n > maxStubFrame || n < -maxStubFrame {
			return false
		}
		if inst.Op == x86asm.SUB {
			n = -n
		}
		x.regs[cpu.RSP] += uint64(n)
		return true
	case x86asm.MOV:
		if from, fromReg := registerOf(inst.Args[1]); isReg && fromReg {
			x.put(to, x.regs[from], x.has(from))
			return true
		}
		if m, isMem := inst.Args[1].(x86asm.Mem); isReg && to != cpu.RSP && isMem && m.Base == x86asm.RSP && m.Index == 0 {
			v, ok := x.word(x.regs[cpu.RSP] + uint64(m.Disp))
			x.put(to, v, ok && x.has(cpu.RSP))
			return true
		}
		if m, isMem := inst.Args[0].(x86asm.Mem); isMem && m.Base == x86asm.RSP && m.Index == 0 && inst.MemBytes == 8 {
			from, fromReg := registerOf(inst.Args[1])
			return x.has(cpu.RSP) && x.store(x.regs[cpu.RSP]+uint64(m.Disp), from, fromReg)
		}
	}
	if isReg {
		if to == cpu.RSP || to == cpu.RBP {
			return inst.Op == x86asm.CMP || inst.Op == x86asm.TEST
		}
		x.put(to, 0, false)
	} else if r, part := inst.Args[0].(x86asm.Reg); part && r >= x86asm.AL && r <= x86asm.R15L {
		if r == x86asm.ESP || r == x86asm.EBP || r == x86asm.SP || r == x86asm.BP {
			return inst.Op == x86asm.CMP || inst.Op == x86asm.TEST
		}
		if n := (r - x86asm.EAX); r >= x86asm.EAX && r <= x86asm.R15L {
			x.put(dwarfNumbers[n], 0, false)
		}
	}
	return true
}
