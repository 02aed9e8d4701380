package emulate

import (
	"math/bits"

	"golang.org/x/arch/x86/x86asm"
)

// shift executes shifts and rotations.
func (m *Machine) shift(o *op, a, b *operand) {
	v, n := m.get(a, o), value{1, 0xff, false}
	if o.n > 1 {
		n = m.get(b, o)
	}
	size := a.size
	if !n.whole(1) || size == 0 || size > 8 {
		m.set(a, o, m.lost(v, n))
		return
	}
	width := uint64(8 * size)
	count := n.v & 31
	if size == 8 {
		count = n.v & 63
	}
	if count == 0 {
		m.set(a, o, v)
		return
	}
	if o.code == x86asm.ROL || o.code == x86asm.ROR {
		count %= width
	}
	if !v.whole(size) {
		m.set(a, o, m.shiftBytes(o, v, count, size))
		return
	}
	late := v.late || n.late
	x := v.v & bitsMask(size)
	var r, cf uint64
	switch o.code {
	case x86asm.SHL:
		if count <= width {
			r, cf = x<<count, x>>(width-count)&1
		}
	case x86asm.SHR:
		r, cf = x>>count, x>>(count-1)&1
	case x86asm.SAR:
		s := int64(x<<(64-width)) >> (64 - width)
		r, cf = uint64(s>>count), uint64(s>>(count-1))&1
	case x86asm.ROL:
		r = x<<count | x>>(width-count)
		cf = r & 1
	case x86asm.ROR:
		r = x>>count | x<<(width-count)
		cf = r >> (width - 1) & 1
	}
	r &= bitsMask(size)
	top := r >> (width - 1) & 1
	var of uint64
	switch o.code {
	case x86asm.SHL, x86asm.ROL:
		of = top ^ cf
	case x86asm.SHR:
		of = x >> (width - 1)
	case x86asm.ROR:
		of = top ^ r>>(width-2)&1
	}
	if o.code == x86asm.ROL || o.code == x86asm.ROR {
		m.flags = m.flags&^(carry|overflow) | cf | of*overflow
		m.flagsOK |= carry | overflow
		m.lateF = m.lateF || late
	} else {
		m.setFlags(cf|of*overflow, r, size, late)
	}
	if count != 1 {
		m.flagsOK &^= overflow
	}
	m.set(a, o, value{r, 0xff, late})
}

// shiftBytes shifts a value of which only some bytes are known, by whole bytes.
func (m *Machine) shiftBytes(o *op, v value, count uint64, size uint8) value {
	m.flagsOK &= direction
	if count%8 != 0 || o.code != x86asm.SHL && o.code != x86asm.SHR {
		return value{0, 0, v.late}
	}
	k, n := v.known&bytesMask(size), count/8
	if o.code == x86asm.SHL {
		return value{v.v << count, k<<n | (1<<n - 1), v.late}
	}
	v = v.extend(size)
	return value{v.v >> count, v.known>>n | ^(0xff >> n), v.late}
}

// doubleShift executes shld and shrd.
func (m *Machine) doubleShift(o *op, a, b *operand) {
	v, w, n := m.get(a, o), m.get(b, o), m.get(&o.args[2], o)
	size := a.size
	if o.args[2].kind == constant {
		n = value{o.args[2].value, 0xff, false}
	}
	if !v.whole(size) || !w.whole(size) || !n.whole(1) || size < 4 || size > 8 {
		m.set(a, o, m.lost(v, w))
		return
	}
	width := uint64(8 * size)
	count := n.v & (width - 1)
	if count == 0 {
		m.set(a, o, v)
		return
	}
	late := v.late || w.late || n.late
	x, y := v.v&bitsMask(size), w.v&bitsMask(size)
	var r, cf uint64
	if o.code == x86asm.SHLD {
		r, cf = x<<count|y>>(width-count), x>>(width-count)&1
	} else {
		r, cf = x>>count|y<<(width-count), x>>(count-1)&1
	}
	r &= bitsMask(size)
	m.setFlags(cf, r, size, late)
	m.flagsOK &^= overflow
	m.set(a, o, value{r, 0xff, late})
}

// multiply executes mul and imul with one, two and three operands.
func (m *Machine) multiply(o *op) {
	a, b := &o.args[0], &o.args[1]
	if o.n > 1 {
		v := m.get(a, o)
		w := m.get(b, o)
		if o.n == 3 {
			v, w = w, m.get(&o.args[2], o)
		}
		size := a.size
		if !v.whole(size) || !w.whole(size) {
			m.set(a, o, m.lost(v, w))
			return
		}
		late := v.late || w.late
		x, y := int64(v.signed(size).v), int64(w.signed(size).v)
		hi, lo := bits.Mul64(uint64(x), uint64(y))
		if x < 0 {
			hi -= uint64(y)
		}
		if y < 0 {
			hi -= uint64(x)
		}
		r := lo & bitsMask(size)
		s := value{r, 0xff, false}.signed(size).v
		var f uint64
		if s != lo || hi != uint64(int64(lo)>>63) {
			f = carry | overflow
		}
		m.setFlags(f, r, size, late)
		m.flagsOK &= carry | overflow | direction
		m.set(a, o, value{r, 0xff, late})
		return
	}
	size := a.size
	v, w := value{m.r[0], m.known[0], m.lateR&1 != 0}.extend(size), m.get(a, o)
	late := v.late || w.late
	ok := v.whole(size) && w.whole(size)
	var lo, hi uint64
	if o.code == x86asm.MUL {
		hi, lo = bits.Mul64(v.v, w.v)
	} else {
		x, y := v.signed(size).v, w.signed(size).v
		hi, lo = bits.Mul64(x, y)
		if int64(x) < 0 {
			hi -= y
		}
		if int64(y) < 0 {
			hi -= x
		}
	}
	m.flagsOK &= direction
	switch size {
	case 1:
		m.setReg(0, 2, false, value{lo, mask(ok), late})
	case 8:
		m.setReg(0, 8, false, value{lo, mask(ok), late})
		m.setReg(2, 8, false, value{hi, mask(ok), late})
	default:
		m.setReg(0, size, false, value{lo, mask(ok), late})
		m.setReg(2, size, false, value{lo >> (8 * size), mask(ok), late})
	}
	if ok {
		upper := lo >> (8 * (size & 7)) & bitsMask(size)
		if size == 8 {
			upper = hi
		}
		var f uint64
		if o.code == x86asm.MUL && upper != 0 || o.code == x86asm.IMUL && upper != -(lo>>(8*size-1)&1)&bitsMask(size) {
			f = carry | overflow
		}
		m.flags, m.lateF = m.flags&direction|f, late
		m.flagsOK |= carry | overflow
	}
}

// divide executes div and idiv.
func (m *Machine) divide(o *op) {
	a := &o.args[0]
	size := a.size
	d := m.get(a, o)
	lo, hi := value{m.r[0], m.known[0], m.lateR&1 != 0}.extend(size), value{m.r[2], m.known[2], m.lateR>>2&1 != 0}.extend(size)
	if size == 1 {
		v := value{m.r[0], m.known[0], m.lateR&1 != 0}.extend(2)
		lo, hi = value{v.v & 0xff, v.known, v.late}, value{v.v >> 8, v.known>>1 | 0x80, v.late}
	}
	late := d.late || lo.late || hi.late
	m.flagsOK &= direction
	if !d.whole(size) || !lo.whole(size) || !hi.whole(size) {
		m.quotient(size, value{0, 0, late}, value{0, 0, late})
		return
	}
	if d.v == 0 {
		m.end(Fault)
		return
	}
	if o.code == x86asm.DIV {
		if hi.v >= d.v {
			m.end(Fault)
			return
		}
		var q, r uint64
		if size == 8 {
			q, r = bits.Div64(hi.v, lo.v, d.v)
		} else {
			n := hi.v<<(8*size) | lo.v
			q, r = n/d.v, n%d.v
		}
		m.quotient(size, value{q, 0xff, late}, value{r, 0xff, late})
		return
	}
	// Quotients that do not fit fault; so does a dividend that is wider than 64 bits, or nearly so.
	n := int64(lo.v)
	if size < 8 {
		n = int64(value{hi.v<<(8*size) | lo.v, 0xff, false}.signed(2 * size).v)
	} else if hi.v != uint64(n>>63) {
		m.quotient(size, value{0, 0, late}, value{0, 0, late})
		return
	}
	y := int64(d.signed(size).v)
	if y == -1 && n == -1<<63 {
		m.end(Fault)
		return
	}
	q := n / y
	if int64(value{uint64(q), 0xff, false}.signed(size).v) != q {
		m.end(Fault)
		return
	}
	m.quotient(size, value{uint64(q), 0xff, late}, value{uint64(n % y), 0xff, late})
}

// quotient writes the results of a division.
func (m *Machine) quotient(size uint8, q, r value) {
	m.setReg(0, size, false, q)
	if size == 1 {
		m.setReg(0, 1, true, r)
		return
	}
	m.setReg(2, size, false, r)
}

// compareExchange executes cmpxchg.
func (m *Machine) compareExchange(o *op, a, b *operand) {
	old, with := m.get(a, o), value{m.r[0], m.known[0], m.lateR&1 != 0}.extend(a.size)
	v := m.get(b, o)
	m.sub(with, old, 0, a.size, true)
	if m.flagsOK&zero == 0 {
		m.set(a, o, value{})
		m.setReg(0, a.size, false, value{})
		return
	}
	v.late = v.late || m.lateF
	old.late = old.late || m.lateF
	if m.flags&zero != 0 {
		m.set(a, o, v)
		return
	}
	m.setReg(0, a.size, false, old)
}

// countBits executes bsf, bsr, tzcnt, lzcnt and popcnt.
func (m *Machine) countBits(o *op, a, b *operand) {
	v := m.get(b, o)
	size := a.size
	if !v.whole(size) || size < 2 {
		m.set(a, o, m.lost(v, v))
		return
	}
	x, width := v.v&bitsMask(size), int(size)*8
	m.flagsOK, m.lateF = m.flagsOK&direction|zero, v.late
	m.flags &= direction
	r := 0
	switch o.code {
	case x86asm.BSF, x86asm.BSR:
		if x == 0 {
			m.flags |= zero
			return // the destination stays as it is
		}
		if r = bits.TrailingZeros64(x); o.code == x86asm.BSR {
			r = 63 - bits.LeadingZeros64(x)
		}
	case x86asm.TZCNT, x86asm.LZCNT:
		if r = min(bits.TrailingZeros64(x), width); o.code == x86asm.LZCNT {
			r = bits.LeadingZeros64(x) - (64 - width)
		}
		m.flagsOK |= carry
		m.flags |= bit(x == 0) * carry
		m.flags |= bit(r == 0) * zero
	case x86asm.POPCNT:
		r = bits.OnesCount64(x)
		m.flagsOK |= allFlags
		m.flags |= bit(x == 0) * zero
	}
	m.set(a, o, value{uint64(r), 0xff, v.late})
}

// bitTest executes bt, bts, btr and btc.
func (m *Machine) bitTest(o *op, a, b *operand) {
	n := m.get(b, o)
	if o.args[1].kind == constant {
		n = value{b.value & 0xff, 0xff, false}
	}
	if a.kind != general && o.args[1].kind != constant {
		// The bit may lie anywhere in memory.
		m.flagsOK &^= carry
		if o.code != x86asm.BT {
			m.end(Opaque)
		}
		return
	}
	v := m.get(a, o)
	if !v.whole(a.size) || !n.whole(1) {
		m.flagsOK &^= carry
		if o.code != x86asm.BT {
			m.set(a, o, value{0, 0, v.late})
		}
		return
	}
	at := n.v & uint64(8*a.size-1)
	late := v.late || n.late
	m.flags = m.flags&^carry | v.v>>at&1
	m.flagsOK |= carry
	m.lateF = m.lateF || late
	v.late = late
	switch o.code {
	case x86asm.BTS:
		v.v |= 1 << at
	case x86asm.BTR:
		v.v &^= 1 << at
	case x86asm.BTC:
		v.v ^= 1 << at
	default:
		return
	}
	m.set(a, o, v)
}
