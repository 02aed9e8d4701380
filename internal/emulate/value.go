package emulate

import "golang.org/x/arch/x86/x86asm"

// value is a number of up to 8 bytes, with a mask of the bytes that are known.
type value struct {
	v     uint64
	known uint8
	late  bool // it depends on memory that was read late
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// mask returns the mask of a value that is known or not.
func mask(ok bool) uint8 {
	if ok {
		return 0xff
	}
	return 0
}

// bytesMask returns the mask of a value's first bytes.
func bytesMask(size uint8) uint8 {
	if size >= 8 {
		return 0xff
	}
	return 1<<size - 1
}

// bitsMask returns the bits of a value's first bytes.
func bitsMask(size uint8) uint64 {
	if size >= 8 {
		return ^uint64(0)
	}
	return 1<<(8*size) - 1
}

// whole reports whether the first bytes of a value are known.
func (v value) whole(size uint8) bool {
	k := bytesMask(size)
	return v.known&k == k
}

// address returns the address of an operand in memory; ok is false if it is not known.
func (m *Machine) address(a *operand, o *op) (addr uint64, ok, late bool) {
	ok = true
	switch a.base {
	case noReg:
	case ripReg:
		addr = o.next
	default:
		addr, ok, late = m.r[a.base], m.known[a.base] == 0xff, m.lateR>>a.base&1 != 0
	}
	if a.index != noReg && a.index < 16 {
		addr += m.r[a.index] * uint64(a.scale)
		ok, late = ok && m.known[a.index] == 0xff, late || m.lateR>>a.index&1 != 0
	}
	addr += a.value
	if o.narrow {
		addr = uint64(uint32(addr))
	}
	if a.segment == x86asm.FS || a.segment == x86asm.GS {
		ok = false
	}
	return addr, ok, late
}

// get returns an operand's value, zero-extended.
func (m *Machine) get(a *operand, o *op) value {
	switch a.kind {
	case general:
		v := value{m.r[a.reg], m.known[a.reg], m.lateR>>a.reg&1 != 0}
		if a.high {
			v.v, v.known = v.v>>8, v.known>>1
		}
		return v.extend(a.size)
	case maskRegister:
		return m.k[a.reg]
	case constant:
		return value{a.value & bitsMask(a.size), 0xff, false}
	case inMemory:
		addr, ok, late := m.address(a, o)
		if !ok || a.size == 0 || a.size > 8 {
			return value{0, ^bytesMask(a.size), late}
		}
		v := m.mem.load(addr, a.size)
		v.late = v.late || late
		return v
	}
	return value{}
}

// extend clears what is above a value's first bytes, which is known then.
func (v value) extend(size uint8) value {
	v.v &= bitsMask(size)
	v.known |= ^bytesMask(size)
	return v
}

// signed extends the sign of a value's first bytes.
func (v value) signed(size uint8) value {
	if !v.whole(size) {
		return value{v.v, v.known & bytesMask(size), v.late}
	}
	shift := 64 - 8*uint(size)
	return value{uint64(int64(v.v<<shift) >> shift), 0xff, v.late}
}

// set writes an operand.
func (m *Machine) set(a *operand, o *op, v value) {
	switch a.kind {
	case general:
		m.setReg(a.reg, a.size, a.high, v)
	case maskRegister:
		m.k[a.reg] = v
	case inMemory:
		addr, ok, late := m.address(a, o)
		if !ok {
			m.end(Unknown) // any memory may have changed
			return
		}
		v.late = v.late || late
		if !m.mem.store(addr, a.size, v) {
			m.end(Limit)
		}
	}
}

// setReg writes a register or a part of one.
func (m *Machine) setReg(reg, size uint8, high bool, v value) {
	late := m.lateR>>reg&1 != 0
	switch {
	case size == 8:
		m.r[reg], m.known[reg], late = v.v, v.known, v.late
	case size == 4:
		m.r[reg], m.known[reg], late = v.v&bitsMask(4), v.known|0xf0, v.late
	case high:
		m.r[reg] = m.r[reg]&^0xff00 | v.v&0xff<<8
		m.known[reg] = m.known[reg]&^2 | v.known&1<<1
		late = late || v.late
	default:
		b, k := bitsMask(size), bytesMask(size)
		m.r[reg] = m.r[reg]&^b | v.v&b
		m.known[reg] = m.known[reg]&^k | v.known&k
		late = late || v.late
	}
	if m.lateR &^= 1 << reg; late {
		m.lateR |= 1 << reg
	}
}

// push stores a word on the stack.
func (m *Machine) push(v value) {
	if m.known[rsp] != 0xff {
		m.end(Unknown)
		return
	}
	m.r[rsp] -= 8
	if !m.mem.store(m.r[rsp], 8, v) {
		m.end(Limit)
	}
}

// pop takes a word from the stack.
func (m *Machine) pop() value {
	if m.known[rsp] != 0xff {
		m.end(Unknown)
		return value{}
	}
	v := m.mem.load(m.r[rsp], 8)
	m.r[rsp] += 8
	return v
}
