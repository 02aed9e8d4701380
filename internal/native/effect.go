package native

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
)

// index returns a tracked register's place in pathState.regs, or -1. Only whole registers and their
// lower halves matter: nothing narrower is ever restored.
func index(a x86asm.Arg) int {
	r, ok := a.(x86asm.Reg)
	if !ok {
		return -1
	}
	switch r {
	case x86asm.RBX, x86asm.EBX, x86asm.BX, x86asm.BL, x86asm.BH:
		return 0
	case x86asm.RBP, x86asm.EBP, x86asm.BP, x86asm.BPB:
		return 1
	case x86asm.R12, x86asm.R12L, x86asm.R12W, x86asm.R12B:
		return 2
	case x86asm.R13, x86asm.R13L, x86asm.R13W, x86asm.R13B:
		return 3
	case x86asm.R14, x86asm.R14L, x86asm.R14W, x86asm.R14B:
		return 4
	case x86asm.R15, x86asm.R15L, x86asm.R15W, x86asm.R15B:
		return 5
	}
	return -1
}

// whole reports whether a is all 8 bytes of a register.
func whole(a x86asm.Arg) bool {
	r, ok := a.(x86asm.Reg)
	return ok && r >= x86asm.RAX && r <= x86asm.R15
}

func isSP(a x86asm.Arg) bool {
	r, ok := a.(x86asm.Reg)
	return ok && (r == x86asm.RSP || r == x86asm.ESP || r == x86asm.SP || r == x86asm.SPB)
}

// address returns the place that a memory operand refers to, if it is on the stack.
func (st *pathState) address(a x86asm.Arg) place {
	m, ok := a.(x86asm.Mem)
	if !ok || m.Index != 0 || m.Segment != 0 {
		return place{}
	}
	switch m.Base {
	case x86asm.RSP:
		return st.sp.plus(m.Disp)
	case x86asm.RBP:
		return st.bp.plus(m.Disp)
	}
	return place{}
}

func (p place) plus(n int64) place {
	n += int64(p.off)
	if n != int64(int32(n)) {
		return place{}
	}
	p.off = int32(n)
	return p
}

// apply applies the effect of one instruction that does not jump to the state.
func (st *pathState) apply(inst *x86asm.Inst) {
	a, b := inst.Args[0], inst.Args[1]
	switch inst.Op {
	case x86asm.PUSH:
		st.sp = st.sp.plus(-8)
		st.store(st.sp, a)
		return
	case x86asm.POP:
		from := st.sp
		st.sp = st.sp.plus(8)
		if isSP(a) {
			st.sp = st.memory(from)
			return
		}
		st.load(a, from)
		return
	case x86asm.PUSHFQ:
		st.sp = st.sp.plus(-8)
		return
	case x86asm.POPFQ:
		st.sp = st.sp.plus(8)
		return
	case x86asm.LEAVE:
		st.sp = st.bp.plus(8)
		st.load(x86asm.RBP, st.bp)
		return
	case x86asm.ENTER:
		st.sp, st.bp = place{}, place{}
		return
	case x86asm.CALL:
		st.touched |= callTouches
		return
	case x86asm.CMP, x86asm.TEST, x86asm.NOP, x86asm.BT:
		return // these change no tracked register
	case x86asm.XCHG:
		st.clobber(b)
	}
	if isSP(a) {
		st.setSP(inst)
		return
	}
	if n := number(a); n != nowhereReg {
		old := place{}
		if inst.Op == x86asm.MOV && whole(a) && whole(b) {
			if old = st.sp; !isSP(b) {
				old = st.copyIn(b)
			}
		}
		switch {
		case old.ok && (isSP(b) || !st.copied.ok || n == st.copy):
			st.copy, st.copied = n, old
		case n == st.copy:
			st.copied = place{}
		}
		st.touched |= 1 << n
	}
	if _, isMem := a.(x86asm.Mem); isMem {
		if inst.Op == x86asm.MOV {
			st.store(st.address(a), b)
		}
		return
	}
	if i := index(a); i >= 0 {
		switch {
		case inst.Op == x86asm.MOV && inst.MemBytes == 8:
			if from := st.address(b); from.ok {
				st.load(a, from)
				return
			}
		case inst.Op == x86asm.MOV && a == x86asm.RBP && isSP(b):
			st.clobber(a)
			st.bp = st.sp
			return
		case inst.Op == x86asm.LEA && a == x86asm.RBP:
			to := st.address(b)
			st.clobber(a)
			st.bp = to
			return
		}
		st.clobber(a)
	}
	// Few instructions write two register operands: xadd, mulx.
	if inst.Op == x86asm.XADD {
		st.clobber(b)
	}
}

// setSP applies an instruction that writes the stack pointer.
func (st *pathState) setSP(inst *x86asm.Inst) {
	b := inst.Args[1]
	imm, isImm := b.(x86asm.Imm)
	switch {
	case inst.Op == x86asm.ADD && isImm:
		st.sp = st.sp.plus(int64(imm))
	case inst.Op == x86asm.SUB && isImm:
		st.sp = st.sp.plus(-int64(imm))
	case inst.Op == x86asm.LEA:
		st.sp = st.address(b)
	case inst.Op == x86asm.AND && st.sp.ok && st.sp.base != alignedBase:
		st.sp = place{alignedBase, true, 0}
	case inst.Op == x86asm.MOV && whole(b):
		st.sp = st.copyIn(b)
	case inst.Op == x86asm.MOV && b == x86asm.RBP:
		st.sp = st.bp
	case inst.Op == x86asm.MOV && inst.MemBytes == 8:
		st.sp = st.memory(st.address(b))
	default:
		st.sp = place{}
	}
}

// copyIn returns the old stack pointer that a register holds: one that was copied on the path, or
// before it, if the register has not changed since.
func (st *pathState) copyIn(a x86asm.Arg) place {
	n := number(a)
	switch {
	case n == regRBP:
		return st.bp
	case n == st.copy && st.copied.ok:
		return st.copied
	case n != nowhereReg && st.touched>>n&1 == 0:
		return place{dwarfNumber[n], true, 0}
	}
	return place{}
}

// callTouches are the registers that a call may change: rax, rcx, rdx, rsi, rdi and r8 to r11.
const callTouches = 1<<0 | 1<<1 | 1<<2 | 1<<6 | 1<<7 | 0xf<<8

// memory returns the old stack or frame pointer that the stack holds at a place.
func (st *pathState) memory(from place) place {
	if !from.ok || from.inMemory() || from.base == cpu.RSP && from.off < 0 {
		return place{}
	}
	for k := range st.written[:st.writes] {
		if st.written[k].at == from {
			return st.written[k].old
		}
	}
	if from.base == alignedBase {
		return place{}
	}
	for i := range st.slots {
		if !st.slots[i].ok || st.slots[i] == from {
			st.slots[i] = from
			return place{memoryBase + uint8(i), true, 0}
		}
	}
	return place{}
}

// clobber marks a register's value as not followed.
func (st *pathState) clobber(a x86asm.Arg) {
	if i := index(a); i >= 0 {
		st.regs[i].from = lost
		if tracked[i] == cpu.RBP {
			st.bp = place{}
		}
	}
}

// store notes that the path itself saves a tracked register.
func (st *pathState) store(at place, a x86asm.Arg) {
	if !at.ok {
		return
	}
	i := index(a)
	if i >= 0 && !whole(a) {
		i = -1
	}
	var was held
	if i >= 0 {
		was = st.regs[i]
	}
	var old place
	if whole(a) && at.base == alignedBase {
		old = st.copyIn(a)
	}
	for k := range st.written[:st.writes] {
		if st.written[k].at == at {
			st.written[k].reg, st.written[k].was, st.written[k].old = uint8(i+1), was, old
			return
		}
	}
	if st.writes < len(st.written) {
		w := &st.written[st.writes]
		w.at, w.reg, w.was, w.old = at, uint8(i+1), was, old
		st.writes++
	}
}

// load sets a tracked register to what the stack holds at a place.
func (st *pathState) load(a x86asm.Arg, from place) {
	i := index(a)
	if i < 0 {
		return
	}
	if tracked[i] == cpu.RBP {
		st.bp = st.memory(from)
	}
	g := &st.regs[i]
	g.from, g.at = loaded, from
	if !from.ok {
		g.from = lost
		return
	}
	for k := range st.written[:st.writes] {
		if st.written[k].at == from {
			// Saved on this path: the register gets back what it held then.
			g.from = lost
			if st.written[k].reg == uint8(i+1) {
				*g = st.written[k].was
				if g.from == untouched && tracked[i] == cpu.RBP {
					st.bp = place{cpu.RBP, true, 0}
				}
			}
			return
		}
	}
}
