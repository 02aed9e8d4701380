package native

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
)

// moveOp is what an instruction does to the stack pointer.
type moveOp uint8

const (
	moveNone   moveOp = iota
	movePush          // of reg, or of something else
	movePop           // into reg, or elsewhere
	movePopSP         // the stack pointer itself is popped
	moveAdd           // rsp += n
	moveFromSP        // reg = rsp
	moveToSP          // rsp = reg + n
	moveLost          // rsp gets a value that is not followed
)

// move is the part of an instruction that matters for the stack pointer.
type move struct {
	at, to    uint32 // offsets; to: where it jumps
	n         int32
	op        moveOp
	reg       uint8    // hardware number of the register that is used or written
	also      [3]uint8 // others that are written
	jump, end bool     // end: nothing is executed after it
	call      bool
}

const (
	nowhere    = 1<<32 - 1
	nowhereReg = 0xff
	regRBP     = 5
	regRSP     = 4
)

// Bounds on the code that moves decodes.
const (
	maxSweptCode = 1 << 20 // bytes
	maxSwept     = 1 << 16 // instructions
)

// dwarfNumber maps hardware numbers of registers to DWARF numbers.
var dwarfNumber = [16]uint8{
	cpu.RAX, cpu.RCX, cpu.RDX, cpu.RBX, cpu.RSP, cpu.RBP, cpu.RSI, cpu.RDI,
	cpu.R8, cpu.R9, cpu.R10, cpu.R11, cpu.R12, cpu.R13, cpu.R14, cpu.R15,
}

// moves decodes code from its start to its end; false if there is too much of it.
// The result is valid until the next call.
func (r *Reader) moves(code []byte) (out []move, ok bool) {
	if len(code) > maxSweptCode {
		return nil, false
	}
	m := codeCopy{0x1000, code}
	hi := m.lo + uint64(len(code))
	out = r.swept[:0]
	for pc := m.lo; pc < hi; {
		if len(out) == maxSwept {
			return nil, false
		}
		var v move
		if n := v.quick(code[pc-m.lo:], uint32(pc-m.lo)); n > 0 {
			out = append(out, v)
			pc += uint64(n)
			continue
		}
		inst, decoded := r.code.decode(&m, pc, m.lo, hi)
		v = move{at: uint32(pc - m.lo), to: nowhere, reg: nowhereReg, also: [3]uint8{nowhereReg, nowhereReg, nowhereReg}}
		if !decoded {
			// Data, or an instruction that the decoder does not know: it is not executed past.
			v.end = true
			pc++
		} else {
			pc += uint64(inst.Len)
			v.from(&inst, pc-m.lo)
		}
		out = append(out, v)
	}
	r.swept = out
	return out, true
}

// from fills in the effect of an instruction that ends at next.
func (v *move) from(inst *x86asm.Inst, next uint64) {
	a, b := inst.Args[0], inst.Args[1]
	imm, fixed := b.(x86asm.Imm)
	fixed = fixed && int64(imm) == int64(int32(imm)) && imm != -1<<31
	switch inst.Op {
	case x86asm.PUSH:
		if v.op, v.reg = movePush, nowhereReg; whole(a) {
			v.reg = number(a)
		}
	case x86asm.PUSHFQ:
		v.op = movePush
	case x86asm.POP:
		if v.op, v.reg = movePop, number(a); v.reg == regRSP {
			v.op, v.reg = movePopSP, nowhereReg
		}
	case x86asm.POPFQ:
		v.op = movePop
	case x86asm.ADD, x86asm.SUB:
		switch {
		case !isSP(a):
			v.reg = number(a)
		case !fixed:
			v.op = moveLost
		case inst.Op == x86asm.ADD:
			v.op, v.n = moveAdd, int32(imm)
		default:
			v.op, v.n = moveAdd, -int32(imm)
		}
	case x86asm.MOV, x86asm.LEA:
		v.assign(inst, a, b)
	case x86asm.LEAVE:
		v.op, v.reg = moveLost, regRBP
	case x86asm.ENTER:
		v.op = moveLost
	case x86asm.CMP, x86asm.TEST, x86asm.NOP, x86asm.BT:
	case x86asm.CALL:
		if rel, ok := a.(x86asm.Rel); ok && rel == 0 {
			v.op = movePush // a call that only reads the pc
			return
		}
		v.call = true
	case x86asm.RET, x86asm.UD2, x86asm.HLT, x86asm.INT, x86asm.ICEBP:
		v.end = true
	case x86asm.JMP:
		v.jump, v.end = true, true
		v.target(a, next)
	case x86asm.MUL, x86asm.DIV, x86asm.IDIV, x86asm.IMUL, x86asm.CQO, x86asm.CDQ, x86asm.RDTSC, x86asm.CPUID, x86asm.CMPXCHG, x86asm.XGETBV:
		v.reg, v.also[0], v.also[1] = number(a), 0, 2
		if inst.Op == x86asm.CPUID {
			v.reg, v.also[2] = 3, 1
		}
	case x86asm.MOVSB, x86asm.MOVSD, x86asm.MOVSQ, x86asm.MOVSW, x86asm.STOSB, x86asm.STOSD, x86asm.STOSQ, x86asm.STOSW,
		x86asm.SCASB, x86asm.SCASD, x86asm.SCASQ, x86asm.SCASW, x86asm.CMPSB, x86asm.CMPSQ, x86asm.CMPSW:
		v.reg, v.also[0], v.also[1], v.also[2] = number(a), 1, 6, 7
	case x86asm.XCHG, x86asm.XADD:
		if v.reg, v.also[0] = number(a), number(b); isSP(a) || isSP(b) {
			v.op = moveLost
		}
	default:
		if conditional(inst.Op) {
			v.jump = true
			v.target(a, next)
			return
		}
		if v.reg = number(a); isSP(a) {
			v.op = moveLost
		}
	}
}

// assign fills in a mov or lea.
func (v *move) assign(inst *x86asm.Inst, a, b x86asm.Arg) {
	v.reg = number(a)
	mem, isMem := b.(x86asm.Mem)
	plain := isMem && inst.Op == x86asm.LEA && mem.Index == 0 && mem.Segment == 0 && int64(int32(mem.Disp)) == mem.Disp
	switch {
	case isSP(a) && inst.Op == x86asm.MOV && whole(b):
		v.op, v.reg = moveToSP, number(b)
	case isSP(a) && plain && mem.Base == x86asm.RSP:
		v.op, v.n, v.reg = moveAdd, int32(mem.Disp), nowhereReg
	case isSP(a) && plain && whole(mem.Base):
		v.op, v.n, v.reg = moveToSP, int32(mem.Disp), number(mem.Base)
	case isSP(a):
		v.op, v.reg = moveLost, nowhereReg
	case whole(a) && inst.Op == x86asm.MOV && isSP(b):
		v.op = moveFromSP
	}
}

// target fills in where a direct jump leads.
func (v *move) target(a x86asm.Arg, next uint64) {
	if rel, ok := a.(x86asm.Rel); ok {
		if to := int64(next) + int64(rel); to >= 0 && to < nowhere {
			v.to = uint32(to)
		}
	}
}

// number returns the hardware number of the general register that a is, or is a part of; nowhereReg
// if none.
func number(a x86asm.Arg) uint8 {
	r, ok := a.(x86asm.Reg)
	switch {
	case !ok:
	case r >= x86asm.RAX && r <= x86asm.R15:
		return uint8(r - x86asm.RAX)
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return uint8(r - x86asm.EAX)
	case r >= x86asm.AX && r <= x86asm.R15W:
		return uint8(r - x86asm.AX)
	case r >= x86asm.AL && r <= x86asm.BL:
		return uint8(r - x86asm.AL)
	case r >= x86asm.AH && r <= x86asm.BH:
		return uint8(r - x86asm.AH)
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return uint8(r-x86asm.SPB) + 4
	}
	return nowhereReg
}
