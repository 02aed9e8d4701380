package hotspot

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// The interpreter leaves a method by taking its frame off and jumping: leave; pop
// the return address into a register; set rsp to where the caller had it, which
// was read from the frame before; jump to that register. Which registers depends
// on the release and on whether the method is native. So the few instructions to
// the jump are done here, on the registers and the stack that were copied.

// Bounds on what is followed to the jump.
const (
	maxLeaving     = 16 // instructions
	maxLeavingCode = 96 // bytes

	staysSlots = 512 // places that are remembered not to leave
)

// leaving says where a thread goes on that was stopped in the interpreter between
// taking a method's frame off and the jump to its caller.
func (vm *VM) leaving(c *walk.Cursor) (f found, ok bool) {
	if c.Regs.Arch != cpu.AMD64 {
		return f, false
	}
	// Hardly any code of the interpreter leaves a method.
	stays := &vm.stepping.stays[c.Regs.PC%staysSlots]
	if *stays == c.Regs.PC {
		return f, false
	}
	code := vm.stepping.ahead[:min(maxLeavingCode, vm.interpHi-c.Regs.PC)]
	if c.Mem == nil || !c.Mem.Bytes(c.Regs.PC, code) || !jumpsByRegister(code) {
		*stays = c.Regs.PC
		return f, false
	}
	x := leavingState{c: c, regs: c.Regs.R, known: c.Regs.Known}
	for range maxLeaving {
		inst, err := x86asm.Decode(code, 64)
		if err != nil || inst.Len > len(code) {
			return f, false
		}
		if inst.Op == x86asm.JMP {
			reg, isReg := registerOf(inst.Args[0])
			if !isReg || !x.has(reg) || !x.has(cpu.RSP) {
				return f, false
			}
			// The jump alone may be one within the interpreter.
			if !x.set && !vm.javaCaller(x.regs[reg]) {
				return f, false
			}
			f = found{ra: x.regs[reg], sp: x.regs[cpu.RSP], fp: x.regs[cpu.RBP]}
			ok = x.has(cpu.RBP) && f.sp >= c.Regs.SP() && f.sp-c.Regs.SP() <= maxLocals && f.sp&7 == 0 && vm.validRA(f.ra)
			return f, ok
		}
		if !x.do(&inst) {
			*stays = c.Regs.PC
			return f, false
		}
		code = code[inst.Len:]
	}
	return f, false
}

// jumpsByRegister says whether code may hold jmp reg: FF E0 to FF E7.
func jumpsByRegister(code []byte) bool {
	for i := range max(0, len(code)-1) {
		if code[i] == 0xFF && code[i+1]&0xF8 == 0xE0 {
			return true
		}
	}
	return false
}

// leavingState are the registers as they will be.
type leavingState struct {
	c     *walk.Cursor
	regs  [cpu.NumRegs]uint64
	known uint32
	// set: a return address was popped, or rsp set to the caller's.
	set bool
}

func (x *leavingState) has(reg uint8) bool { return x.known>>reg&1 != 0 }

func (x *leavingState) put(reg uint8, v uint64, ok bool) {
	if x.known &^= 1 << reg; ok {
		x.regs[reg] = v
		x.known |= 1 << reg
	}
}

// do does one instruction; false for one that leaving a method has no use for.
func (x *leavingState) do(inst *x86asm.Inst) bool {
	to, isReg := registerOf(inst.Args[0])
	switch inst.Op {
	case x86asm.POP:
		if !isReg || to == cpu.RSP || !x.has(cpu.RSP) {
			return false
		}
		v, ok := x.c.Word(x.regs[cpu.RSP])
		x.regs[cpu.RSP] += 8
		x.put(to, v, ok)
		x.set = true
		return true
	case x86asm.MOV:
		from, fromReg := registerOf(inst.Args[1])
		switch {
		case isReg && fromReg:
			x.put(to, x.regs[from], x.has(from))
			x.set = x.set || to == cpu.RSP
		case isReg && to == cpu.RSP:
			return false
		case isReg:
			x.put(to, 0, false)
		}
		return true
	case x86asm.CMP, x86asm.TEST, x86asm.NOP:
		return true
	case x86asm.JE, x86asm.JNE, x86asm.JA, x86asm.JBE, x86asm.JB, x86asm.JAE:
		return true // what is rare is elsewhere
	case x86asm.LEA, x86asm.MOVZX, x86asm.XOR:
		if n, part := inst.Args[0].(x86asm.Reg); part && n >= x86asm.EAX && n <= x86asm.R15L {
			return n != x86asm.ESP && n != x86asm.EBP
		}
		if !isReg || to == cpu.RSP {
			return false
		}
		x.put(to, 0, false)
		return true
	}
	// Among the rest: leave, before which the frame is whole; calls and pushes.
	return false
}

// registerOf is the DWARF number of a whole general register.
func registerOf(a x86asm.Arg) (uint8, bool) {
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
