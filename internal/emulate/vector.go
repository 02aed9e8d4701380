package emulate

import (
	"github.com/candid-profiler/candid/internal/emulate/simd"
)

// vectors are the registers of vectors and of masks.
type vectors struct {
	x [32]simd.Vec
	// lateX and lateY are the registers whose first 16 bytes, and whose further ones, depend on
	// memory that was read late.
	lateX, lateY uint32
	k            [8]value
	// mxcsrSet says that the way numbers are rounded was changed by the trace.
	mxcsrSet bool
}

// vector executes an instruction on registers of vectors.
func (m *Machine) vector(o *op) {
	s, c := o.simd, &m.call
	if s == nil || s.Float && (m.mxcsrSet || o.exact) {
		m.guardVector(o)
		return
	}
	n := o.n
	c.Imm = 0
	if last := &o.args[n-1]; n > 1 && last.kind == constant {
		if c.Imm = byte(last.value); !s.Shift {
			n--
		}
	}
	a, b, third := 0, n-1, -1
	switch {
	case o.blend: // by the register that is the last operand
		if b, third = n-2, n-1; n == 4 {
			a = 1
		}
	case n == 3:
		a = 1
	}
	to := &o.args[0]
	c.FromMemory, c.ToMemory = o.args[b].kind == inMemory, to.kind == inMemory
	c.N, c.M = int(to.size), int(o.args[b].size)
	if to.kind == maskRegister {
		c.N = max(int(o.args[a].size), c.M)
		if a == 0 {
			c.N = c.M
		}
	}
	if o.broadcast {
		c.M = max(c.N, int(o.args[a].size))
	}
	var late bool
	if s.Same && o.args[a].kind == vector && o.args[b].kind == vector && o.args[a].reg == o.args[b].reg {
		c.A, c.B = simd.Vec{Known: ^uint64(0)}, simd.Vec{Known: ^uint64(0)}
	} else {
		late = m.wide(&c.B, &o.args[b], o, c.M)
		if s.One || c.ToMemory {
			c.A.Known = 0
		} else {
			late = m.wide(&c.A, &o.args[a], o, 0) || late
		}
	}
	if third >= 0 {
		late = m.wide(&c.C, &o.args[third], o, 0) || late
	}
	if s.Old || o.mask != 0 && to.kind == vector {
		late = m.wide(&c.Old, to, o, 0) || late
	}
	c.R.Known = 0
	s.Run(c)
	if m.ended {
		return
	}
	if s.Flags {
		f, known := c.R.Word(0)
		if m.flagsOK &= direction; known == 0xff {
			m.flags, m.flagsOK, m.lateF = m.flags&direction|f, m.flagsOK|allFlags, late
		}
		return
	}
	m.setWide(to, o, late)
}

// wide reads an operand to v; bytes, if it is not 0, says how many there are of one in memory, which
// are the same as its first if it is broadcast. It returns whether it was read late.
func (m *Machine) wide(v *simd.Vec, a *operand, o *op, bytes int) (late bool) {
	v.Known = 0
	switch a.kind {
	case vector:
		*v = m.x[a.reg]
		return m.lateX>>a.reg&1 != 0 || a.size > 16 && m.lateY>>a.reg&1 != 0
	case general, maskRegister:
		w := m.get(a, o)
		v.SetWord(0, w.v, w.known)
		return w.late
	case constant:
		v.SetWord(0, a.value&0xff, 0xff)
	case inMemory:
		addr, ok, late := m.address(a, o)
		if !ok {
			return late
		}
		for off := 0; off < int(a.size); off += 8 {
			w := m.mem.load(addr+uint64(off), uint8(min(8, int(a.size)-off)))
			v.SetWord(off, w.v, w.known)
			late = late || w.late
		}
		if o.broadcast {
			for off := int(a.size); off < bytes; off += int(a.size) {
				copy(v.B[off:off+int(a.size)], v.B[:a.size])
			}
			if k := simd.Bytes(int(a.size)); v.Known&k == k {
				v.Known = simd.Bytes(bytes)
			} else {
				v.Known = 0
			}
		}
		return late
	}
	return false
}

// setWide writes the result of the call.
func (m *Machine) setWide(to *operand, o *op, late bool) {
	c := &m.call
	var mask value
	if o.mask != 0 {
		mask = m.k[o.mask]
		late = late || mask.late
		if o.simd.Elem == 0 {
			mask.known = 0
		}
	}
	r, known := c.R.Word(0)
	switch to.kind {
	case general:
		m.setReg(to.reg, 8, false, value{r, known, late})
	case maskRegister:
		v := value{r, known, late}
		if o.mask != 0 {
			v = value{v.v & mask.v, v.known&mask.known | bytesOf(v, 0) | bytesOf(mask, 0), late}
		}
		m.k[to.reg] = v
	case vector:
		if o.mask != 0 {
			m.choose(&c.R, &c.Old, mask, o, int(to.size))
		}
		m.setVector(to, o, late)
	case inMemory:
		addr, ok, lateAddress := m.address(to, o)
		if !ok {
			m.end(Unknown)
			return
		}
		late = late || lateAddress
		if o.mask != 0 {
			// The bytes that are not selected stay as they are.
			for off := 0; off < int(to.size); off += 8 {
				w := m.mem.load(addr+uint64(off), uint8(min(8, int(to.size)-off)))
				c.Old.SetWord(off, w.v, w.known)
				late = late || w.late
			}
			m.choose(&c.R, &c.Old, mask, o, int(to.size))
		}
		for off := 0; off < int(to.size); off += 8 {
			r, known := c.R.Word(off)
			if !m.mem.store(addr+uint64(off), uint8(min(8, int(to.size)-off)), value{r, known, late}) {
				m.end(Limit)
				return
			}
		}
	}
}

// choose takes over those elements of old that a mask does not select, or clears them.
func (m *Machine) choose(r, old *simd.Vec, mask value, o *op, size int) {
	elem := max(o.simd.Elem, 1)
	for i := range size / elem {
		off := i * elem
		k := simd.Bytes(elem) << off
		switch {
		case mask.known>>(i/8)&1 == 0:
			r.Known &^= k
		case mask.v>>i&1 != 0:
		case o.zeroing:
			clear(r.B[off : off+elem])
			r.Known |= k
		default:
			copy(r.B[off:off+elem], old.B[off:off+elem])
			r.Known = r.Known&^k | old.Known&k
		}
	}
}

// setVector writes a register of vectors: instructions with a VEX or EVEX prefix clear what is above
// the result, others leave all above 16 bytes as it is.
func (m *Machine) setVector(to *operand, o *op, late bool) {
	x, r := &m.x[to.reg], &m.call.R
	bit := uint32(1) << to.reg
	m.lateX &^= bit
	if late {
		m.lateX |= bit
	}
	if !o.vex {
		copy(x.B[:16], r.B[:16])
		x.Known = x.Known&^0xffff | r.Known&0xffff
		return
	}
	m.lateY &^= bit
	if late && to.size > 16 {
		m.lateY |= bit
	}
	n := int(to.size)
	*x = *r
	clear(x.B[n:])
	x.Known = x.Known&simd.Bytes(n) | ^simd.Bytes(n)
}

// guardVector executes an instruction of which only the operands are known: its destination is no
// longer known.
func (m *Machine) guardVector(o *op) {
	a := &o.args[0]
	if o.n == 0 {
		return
	}
	if o.simd != nil && o.simd.Flags {
		m.flagsOK &= direction
		return
	}
	switch a.kind {
	case vector:
		if o.vex {
			m.x[a.reg] = simd.Vec{Known: ^simd.Bytes(int(a.size))}
		} else {
			m.x[a.reg].Known &^= 0xffff
		}
	case maskRegister:
		m.k[a.reg] = value{}
	case inMemory:
		m.lose(a, o)
	case general:
		m.setReg(a.reg, 8, false, value{})
	}
}

// zeroUpper executes vzeroupper and vzeroall.
func (m *Machine) zeroUpper(from int) {
	for i := range 16 {
		x := &m.x[i]
		clear(x.B[from:])
		x.Known |= ^simd.Bytes(from)
	}
	m.lateY &^= 0xffff
	if from == 0 {
		m.lateX &^= 0xffff
	}
}
