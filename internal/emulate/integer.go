package emulate

import (
	"math/bits"

	"golang.org/x/arch/x86/x86asm"
)

// integer executes an instruction on general registers and memory.
func (m *Machine) integer(o *op) {
	a, b := &o.args[0], &o.args[1]
	switch o.code {
	case x86asm.MOV, x86asm.MOVNTI:
		m.set(a, o, m.get(b, o))
	case x86asm.MOVZX:
		m.set(a, o, m.get(b, o))
	case x86asm.MOVSX, x86asm.MOVSXD:
		m.set(a, o, m.get(b, o).signed(b.size))
	case x86asm.LEA:
		addr, ok, late := m.address(b, o)
		m.set(a, o, value{addr, mask(ok), late})
	case x86asm.ADD, x86asm.ADC, x86asm.SUB, x86asm.SBB, x86asm.CMP:
		m.addition(o, a, b)
	case x86asm.AND, x86asm.OR, x86asm.XOR, x86asm.TEST:
		m.bitwise(o, a, b)
	case x86asm.NOT:
		v := m.get(a, o)
		v.v = ^v.v
		m.set(a, o, v)
	case x86asm.NEG:
		v := m.get(a, o)
		r := m.sub(value{0, 0xff, false}, v, 0, a.size, true)
		m.set(a, o, r)
	case x86asm.INC, x86asm.DEC:
		cf, ok := m.flags&carry, m.flagsOK&carry
		v, one := m.get(a, o), value{1, 0xff, false}
		if o.code == x86asm.INC {
			v = m.add(v, one, 0, a.size, true)
		} else {
			v = m.sub(v, one, 0, a.size, true)
		}
		m.flags, m.flagsOK = m.flags&^carry|cf, m.flagsOK&^carry|ok
		m.set(a, o, v)
	case x86asm.SHL, x86asm.SHR, x86asm.SAR, x86asm.ROL, x86asm.ROR:
		m.shift(o, a, b)
	case x86asm.SHLD, x86asm.SHRD:
		m.doubleShift(o, a, b)
	case x86asm.IMUL, x86asm.MUL:
		m.multiply(o)
	case x86asm.DIV, x86asm.IDIV:
		m.divide(o)
	case x86asm.CBW, x86asm.CWDE, x86asm.CDQE:
		to := map[x86asm.Op]uint8{x86asm.CBW: 2, x86asm.CWDE: 4, x86asm.CDQE: 8}[o.code]
		v := value{m.r[0], m.known[0], m.lateR&1 != 0}.extend(to / 2)
		m.setReg(0, to, false, v.signed(to/2))
	case x86asm.CWD, x86asm.CDQ, x86asm.CQO:
		size := map[x86asm.Op]uint8{x86asm.CWD: 2, x86asm.CDQ: 4, x86asm.CQO: 8}[o.code]
		v := value{m.r[0], m.known[0], m.lateR&1 != 0}
		ok := v.known>>(size-1)&1 != 0
		m.setReg(2, size, false, value{-(v.v >> (8*size - 1) & 1), mask(ok), v.late})
	case x86asm.PUSH:
		v := m.get(a, o)
		if a.kind == other {
			v = value{}
		}
		m.push(v)
	case x86asm.POP:
		v := m.pop()
		if !m.ended {
			m.set(a, o, v)
		}
	case x86asm.PUSHFQ:
		m.push(value{})
	case x86asm.POPFQ:
		m.pop()
		m.flagsOK = direction
	case x86asm.LEAVE:
		m.setReg(rsp, 8, false, value{m.r[rbp], m.known[rbp], m.lateR>>rbp&1 != 0})
		v := m.pop()
		m.setReg(rbp, 8, false, v)
	case x86asm.CALL:
		to := value{o.target, 0xff, false}
		if !o.direct {
			to = m.get(a, o)
		}
		if to.known != 0xff {
			m.end(Unknown)
			return
		}
		m.push(value{o.next, 0xff, false})
		m.jumpTo(to)
	case x86asm.RET:
		to := m.pop()
		if a.kind == constant {
			m.r[rsp] += a.value & 0xffff
		}
		if !m.ended {
			m.jumpTo(to)
		}
	case x86asm.JMP:
		if o.direct {
			m.jump(o.target)
			return
		}
		m.jumpTo(m.get(a, o))
	case x86asm.JRCXZ, x86asm.JECXZ:
		v := value{m.r[1], m.known[1], m.lateR>>1&1 != 0}
		if o.code == x86asm.JECXZ {
			v = v.extend(4)
		}
		if v.known != 0xff {
			m.end(Unknown)
			return
		}
		if m.late = m.late || v.late; v.v == 0 {
			m.jump(o.target)
		}
	case x86asm.XCHG:
		v, w := m.get(a, o), m.get(b, o)
		m.set(a, o, w)
		m.set(b, o, v)
	case x86asm.XADD:
		v, w := m.get(a, o), m.get(b, o)
		sum := m.add(v, w, 0, a.size, true)
		m.set(b, o, v)
		m.set(a, o, sum)
	case x86asm.CMPXCHG:
		m.compareExchange(o, a, b)
	case x86asm.BSF, x86asm.BSR, x86asm.TZCNT, x86asm.LZCNT, x86asm.POPCNT:
		m.countBits(o, a, b)
	case x86asm.BT, x86asm.BTS, x86asm.BTR, x86asm.BTC:
		m.bitTest(o, a, b)
	case x86asm.BSWAP:
		v := m.get(a, o)
		if !v.whole(a.size) {
			v.known = 0
		}
		v.v = bits.ReverseBytes64(v.v) >> (64 - 8*a.size)
		m.set(a, o, v)
	case x86asm.MOVBE:
		v := m.get(b, o)
		if size := max(a.size, b.size); size > 0 && size <= 8 {
			if !v.whole(size) {
				v.known = 0
			}
			v.v = bits.ReverseBytes64(v.v) >> (64 - 8*size)
		}
		m.set(a, o, v)
	case x86asm.CLC:
		m.flags, m.flagsOK = m.flags&^carry, m.flagsOK|carry
	case x86asm.STC:
		m.flags, m.flagsOK = m.flags|carry, m.flagsOK|carry
	case x86asm.CMC:
		m.flags ^= carry
	case x86asm.CLD:
		m.flags, m.flagsOK = m.flags&^direction, m.flagsOK|direction
	case x86asm.SAHF:
		m.flagsOK &= overflow | direction
	case x86asm.LAHF:
		m.setReg(0, 1, true, value{})
	case x86asm.RDTSC:
		m.setReg(0, 8, false, value{})
		m.setReg(2, 8, false, value{})
	case x86asm.XLATB:
		m.setReg(0, 1, false, value{})
	default:
		m.guard(o)
	}
}

// guard executes an instruction of which only the operands are known: what it may write is no longer
// known.
func (m *Machine) guard(o *op) {
	m.flagsOK &= direction
	if o.n == 0 {
		return
	}
	a := &o.args[0]
	if a.kind == inMemory && a.size > 8 {
		m.lose(a, o)
		return
	}
	m.set(a, o, value{})
}

// lose makes memory unknown.
func (m *Machine) lose(a *operand, o *op) {
	addr, ok, _ := m.address(a, o)
	if !ok {
		m.end(Unknown)
		return
	}
	for off := uint64(0); off < uint64(a.size); off += 8 {
		if !m.mem.store(addr+off, uint8(min(8, uint64(a.size)-off)), value{}) {
			m.end(Limit)
			return
		}
	}
}

// same reports whether two operands are the same register, all of it.
func same(a, b *operand) bool {
	return a.kind == general && b.kind == general && a.reg == b.reg && a.size == b.size && a.high == b.high
}

// canary reports whether an operand is what a function compares its stack's guard with.
func canary(a *operand) bool {
	return a.kind == inMemory && a.segment == x86asm.FS && a.base == noReg && a.index == noReg && a.value == 0x28
}

// addition executes add, sub and compare.
func (m *Machine) addition(o *op, a, b *operand) {
	v, w := m.get(a, o), m.get(b, o)
	if canary(b) && o.code == x86asm.SUB || canary(a) && o.code == x86asm.CMP || canary(b) && o.code == x86asm.CMP {
		// A stack that was not overwritten compares equal; else the program would abort.
		v, w = value{0, 0xff, false}, value{0, 0xff, false}
	}
	if (o.code == x86asm.SUB || o.code == x86asm.CMP) && same(a, b) {
		v, w = value{0, 0xff, false}, value{0, 0xff, false}
	}
	var c uint64
	okay := true
	if o.code == x86asm.ADC || o.code == x86asm.SBB {
		c, okay = m.flags&carry, m.flagsOK&carry != 0
		v.late = v.late || m.lateF
		if o.code == x86asm.SBB && same(a, b) {
			v, w = value{0, 0xff, v.late}, value{0, 0xff, false}
		}
	}
	switch o.code {
	case x86asm.ADD, x86asm.ADC:
		v = m.add(v, w, c, a.size, okay)
	default:
		v = m.sub(v, w, c, a.size, okay)
	}
	if o.code != x86asm.CMP {
		m.set(a, o, v)
	}
}

// add adds with carry and sets the flags.
func (m *Machine) add(v, w value, c uint64, size uint8, okay bool) value {
	if !okay || !v.whole(size) || !w.whole(size) {
		return m.lost(v, w)
	}
	b, top := bitsMask(size), uint64(1)<<(8*size-1)
	x, y := v.v&b, w.v&b
	sum := x + y + c
	r := sum & b
	var f uint64
	if size == 8 {
		if _, out := bits.Add64(x, y, c); out != 0 {
			f |= carry
		}
	} else if sum > b {
		f |= carry
	}
	if (x^r)&(y^r)&top != 0 {
		f |= overflow
	}
	m.setFlags(f, r, size, v.late || w.late)
	return value{r, 0xff, v.late || w.late}
}

// sub subtracts with borrow and sets the flags.
func (m *Machine) sub(v, w value, c uint64, size uint8, okay bool) value {
	if !okay || !v.whole(size) || !w.whole(size) {
		return m.lost(v, w)
	}
	b, top := bitsMask(size), uint64(1)<<(8*size-1)
	x, y := v.v&b, w.v&b
	r := (x - y - c) & b
	var f uint64
	if x < y || c != 0 && x == y {
		f |= carry
	}
	if (x^y)&(x^r)&top != 0 {
		f |= overflow
	}
	m.setFlags(f, r, size, v.late || w.late)
	return value{r, 0xff, v.late || w.late}
}

// lost is the result of something that cannot be computed.
func (m *Machine) lost(v, w value) value {
	m.flagsOK &= direction
	return value{0, 0, v.late || w.late}
}

// setFlags sets carry and overflow as given, and the others by the result.
func (m *Machine) setFlags(f, r uint64, size uint8, late bool) {
	if r == 0 {
		f |= zero
	}
	if r>>(8*size-1)&1 != 0 {
		f |= sign
	}
	if bits.OnesCount8(uint8(r))&1 == 0 {
		f |= parity
	}
	m.flags, m.flagsOK, m.lateF = m.flags&direction|f, allFlags|m.flagsOK&direction, late
}

// bitwise executes and, or, xor and test.
func (m *Machine) bitwise(o *op, a, b *operand) {
	v, w := m.get(a, o), m.get(b, o)
	if o.code == x86asm.XOR && (same(a, b) || canary(b)) {
		v, w = value{0, 0xff, false}, value{0, 0xff, false}
	}
	r := value{0, v.known & w.known, v.late || w.late}
	switch o.code {
	case x86asm.OR:
		r.v = v.v | w.v
		r.known |= bytesOf(v, 0xff) | bytesOf(w, 0xff)
	case x86asm.XOR:
		r.v = v.v ^ w.v
	default:
		r.v = v.v & w.v
		r.known |= bytesOf(v, 0) | bytesOf(w, 0)
	}
	if r.whole(a.size) {
		m.setFlags(0, r.v&bitsMask(a.size), a.size, r.late)
	} else {
		m.flagsOK &= direction
	}
	if o.code != x86asm.TEST {
		m.set(a, o, r)
	}
}

// bytesOf returns the mask of the known bytes of a value that are b.
func bytesOf(v value, b byte) (k uint8) {
	for i := range 8 {
		if v.known>>i&1 != 0 && byte(v.v>>(8*i)) == b {
			k |= 1 << i
		}
	}
	return k
}
