package emulate

import (
	"math/bits"

	"golang.org/x/arch/x86/x86asm"
)

// extension executes the instructions of BMI1 and BMI2 that have a VEX prefix.
func (m *Machine) extension(o *op) {
	a, size := &o.args[0], o.args[0].size
	b, c := &o.args[1], &o.args[2]
	v := m.get(b, o)
	var w value
	if o.n > 2 {
		w = m.get(c, o)
	} else {
		w = value{0, 0xff, false}
	}
	switch o.code {
	case x86asm.RORX, x86asm.SHLX, x86asm.SHRX, x86asm.SARX: // no flags
		if c.kind == constant {
			w = value{c.value, 0xff, false}
		}
		if !v.whole(size) || !w.whole(1) {
			m.set(a, o, value{0, 0, v.late || w.late})
			return
		}
		n := int(w.v) & (8*int(size) - 1)
		r := v.v >> n
		switch o.code {
		case x86asm.SHLX:
			r = v.v << n
		case x86asm.SARX:
			r = uint64(int64(v.signed(size).v) >> n)
		case x86asm.RORX:
			r |= v.v << (8*int(size) - n)
		}
		m.set(a, o, value{r & bitsMask(size), 0xff, v.late || w.late})
		return
	case x86asm.MULX: // rdx by the third operand; the upper half to the first, the lower to the second
		v = value{m.r[2], m.known[2], m.lateR>>2&1 != 0}.extend(size)
		ok, late := mask(v.whole(size) && w.whole(size)), v.late || w.late
		hi, lo := bits.Mul64(v.v, w.v)
		if size == 4 {
			hi, lo = lo>>32, lo&bitsMask(4)
		}
		m.set(b, o, value{lo, ok, late})
		m.set(a, o, value{hi, ok, late})
		return
	case x86asm.PDEP, x86asm.PEXT: // no flags
		if !v.whole(size) || !w.whole(size) {
			m.set(a, o, value{0, 0, v.late || w.late})
			return
		}
		m.set(a, o, value{scatter(v.v, w.v, o.code == x86asm.PDEP), 0xff, v.late || w.late})
		return
	}
	if !v.whole(size) || !w.whole(size) {
		m.set(a, o, m.lost(v, w))
		return
	}
	var r, f uint64
	switch o.code {
	case x86asm.ANDN:
		r = ^v.v & w.v
	case x86asm.BLSR:
		r, f = v.v&(v.v-1), bit(v.v == 0)
	case x86asm.BLSI:
		r, f = v.v&-v.v, bit(v.v != 0)
	case x86asm.BLSMSK:
		r, f = v.v^(v.v-1), bit(v.v == 0)
	case x86asm.BZHI:
		n := w.v & 0xff
		if r = v.v; n < uint64(8*size) {
			r &= 1<<n - 1
		}
		f = bit(n >= uint64(8*size))
	case x86asm.BEXTR:
		r = v.v >> (w.v & 0xff)
		if n := w.v >> 8 & 0xff; n < 64 {
			r &= 1<<n - 1
		}
	}
	r &= bitsMask(size)
	m.setFlags(f*carry, r, size, v.late || w.late)
	if m.flagsOK &^= parity; o.code == x86asm.BEXTR || o.code == x86asm.BLSMSK {
		m.flagsOK &^= sign
	}
	m.set(a, o, value{r, 0xff, v.late || w.late})
}

// scatter executes pdep, and pext if put is not set.
func scatter(x, which uint64, put bool) (r uint64) {
	for i := 0; which != 0; i++ {
		low := which & -which
		which ^= low
		if put && x>>i&1 != 0 {
			r |= low
		} else if !put && x&low != 0 {
			r |= 1 << i
		}
	}
	return r
}

// maskOps are the instructions on registers of masks: what they do, and the size in bytes.
var maskOps = map[x86asm.Op]struct {
	verb string
	size uint8
}{}

func init() {
	for i := x86asm.Op(1); i < 1<<13; i++ {
		name := i.String()
		if len(name) < 4 || name[0] != 'K' {
			continue
		}
		if size := map[byte]uint8{'B': 1, 'W': 2, 'D': 4, 'Q': 8}[name[len(name)-1]]; size > 0 {
			maskOps[i] = struct {
				verb string
				size uint8
			}{name[1 : len(name)-1], size}
		}
	}
}

// masks executes an instruction on registers of masks.
func (m *Machine) masks(o *op) {
	k := maskOps[o.code]
	a, b := &o.args[0], &o.args[1]
	size, n := k.size, 8*uint64(k.size)
	if k.verb == "MOV" {
		v := m.get(b, o).extend(size)
		if a.kind == general {
			m.setReg(a.reg, 8, false, v)
		} else {
			m.set(a, o, v)
		}
		return
	}
	var v, w value
	if b.kind != constant {
		v = m.get(b, o).extend(size)
	}
	if last := &o.args[max(o.n, 1)-1]; last.kind == constant {
		w = value{last.value & 0xff, 0xff, false}
	} else if last.kind == maskRegister {
		w = m.get(last, o).extend(size)
	}
	r := value{0, v.known & w.known, v.late || w.late}
	switch k.verb {
	case "AND":
		r.v, r.known = v.v&w.v, r.known|bytesOf(v, 0)|bytesOf(w, 0)
	case "ANDN":
		r.v = ^v.v & w.v
	case "OR":
		r.v = v.v | w.v
	case "XOR":
		r.v = v.v ^ w.v
		if b.reg == o.args[o.n-1].reg {
			r = value{0, 0xff, false}
		}
	case "XNOR":
		r.v = ^(v.v ^ w.v)
		if b.reg == o.args[o.n-1].reg {
			r = value{^uint64(0), 0xff, false}
		}
	case "NOT":
		r.v = ^v.v
	case "ADD":
		r = value{v.v + w.v, mask(r.known == 0xff), r.late}
	case "SHIFTL":
		r = value{v.v << w.v, mask(v.whole(size)), v.late}
	case "SHIFTR":
		r = value{v.v >> w.v, mask(v.whole(size)), v.late}
	case "UNPCKB", "UNPCKW", "UNPCKD": // of the size of the result
		half := size / 2
		v, w = v.extend(half), w.extend(half)
		r.v, r.known = v.v<<(n/2)|w.v, v.known<<half|w.known&bytesMask(half)
	case "ORTEST", "TEST":
		v = m.get(a, o).extend(size)
		if m.flagsOK &= direction; !v.whole(size) || !w.whole(size) {
			return
		}
		zeros, all := v.v&w.v == 0, ^v.v&w.v&bitsMask(size) == 0
		if k.verb == "ORTEST" {
			zeros, all = v.v|w.v == 0, (v.v|w.v)&bitsMask(size) == bitsMask(size)
		}
		m.flags, m.lateF = m.flags&direction|bit(zeros)*zero|bit(all)*carry, v.late || w.late
		m.flagsOK |= allFlags
		return
	default:
		r = value{}
	}
	m.set(a, o, r.extend(size))
}
