// Package simd computes what vector instructions of x86-64 (SSE to SSE4, AVX, AVX2 and those of
// AVX-512 that C libraries use) make of their operands, byte by byte: bytes that are not known make
// only those unknown that depend on them. Semantics are those of the Intel SDM, volume 2.
//
// Floating-point results are those of rounding to nearest, which is what programs run with unless
// they change MXCSR. Where that register decides more than the rounding (denormal numbers), and
// where operands decide bits that no program looks at (NaN), results are unknown.
package simd

import "encoding/binary"

// MaxBytes is the size of the largest vector register.
const MaxBytes = 64

// Vec is a vector; bit i of Known says that byte i is known.
type Vec struct {
	B     [MaxBytes]byte
	Known uint64
}

// Bytes returns the mask of n bytes from the first.
func Bytes(n int) uint64 {
	if n >= MaxBytes {
		return ^uint64(0)
	}
	return 1<<n - 1
}

// get returns the size bytes at off, a multiple of size, zero-extended; false unless all are known.
func (v *Vec) get(off, size int) (uint64, bool) {
	k := Bytes(size)
	if v.Known>>off&k != k {
		return 0, false
	}
	switch size {
	case 1:
		return uint64(v.B[off]), true
	case 2:
		return uint64(binary.LittleEndian.Uint16(v.B[off:])), true
	case 4:
		return uint64(binary.LittleEndian.Uint32(v.B[off:])), true
	}
	return binary.LittleEndian.Uint64(v.B[off:]), true
}

// put sets the size bytes at off, which are known then.
func (v *Vec) put(off, size int, x uint64) {
	switch size {
	case 1:
		v.B[off] = byte(x)
	case 2:
		binary.LittleEndian.PutUint16(v.B[off:], uint16(x))
	case 4:
		binary.LittleEndian.PutUint32(v.B[off:], uint32(x))
	default:
		binary.LittleEndian.PutUint64(v.B[off:], x)
	}
	v.Known |= Bytes(size) << off
}

// Word returns 8 bytes at a multiple of 8, and the mask of those that are known.
func (v *Vec) Word(off int) (x uint64, known uint8) {
	return binary.LittleEndian.Uint64(v.B[off:]), uint8(v.Known >> off)
}

// SetWord sets 8 bytes at a multiple of 8.
func (v *Vec) SetWord(off int, x uint64, known uint8) {
	binary.LittleEndian.PutUint64(v.B[off:], x)
	v.Known = v.Known&^(0xff<<off) | uint64(known)<<off
}

// copy takes n bytes over from another vector.
func (v *Vec) copy(to int, from *Vec, off, n int) {
	copy(v.B[to:to+n], from.B[off:off+n])
	k := Bytes(n)
	v.Known = v.Known&^(k<<to) | (from.Known>>off&k)<<to
}

// zero clears the bytes from off to end, which are known then.
func (v *Vec) zero(off, end int) {
	clear(v.B[off:end])
	v.Known |= Bytes(end) &^ Bytes(off)
}

// Call is one execution of an instruction. A is its first source (of instructions with two operands:
// the destination as it was), B its last one, C a third one, Old the destination as it was.
type Call struct {
	A, B, C, Old Vec
	// N and M are the sizes of the destination and of B in bytes. Where the destination is no
	// register of vectors or numbers (flags, masks), N is the size of A.
	N, M int
	Imm  byte
	// FromMemory and ToMemory say where B and the destination are.
	FromMemory, ToMemory bool
	// R is the result, of which nothing is known before.
	R Vec
}

// Op tells how an instruction is executed.
type Op struct {
	Run func(c *Call)
	// Elem is the size of the elements that masks select, in bytes; 0 if it has none.
	Elem int
	// Flags says that the result is the flags.
	Flags bool
	// Same says that the result does not depend on the value of operands that are the same register.
	Same bool
	// Float says that the result depends on MXCSR.
	Float bool
	// One says that B is the only source, Old that the destination is a third one.
	One, Old bool
	// Shift says that a constant at the end is the second source.
	Shift bool
}

// Flags (Intel SDM volume 1, 3.4.3), as results have them.
const (
	carry  = 1 << 0
	parity = 1 << 2
	zero   = 1 << 6
)

// sign extends the sign of a value's first size bytes.
func sign(x uint64, size int) int64 {
	s := 64 - 8*uint(size)
	return int64(x<<s) >> s
}

// lanes computes each element from those of A and B.
func lanes(size int, f func(x, y uint64) uint64) func(*Call) {
	return func(c *Call) {
		for o := 0; o < c.N; o += size {
			x, ok := c.A.get(o, size)
			y, too := c.B.get(o, size)
			if ok && too {
				c.R.put(o, size, f(x, y))
			}
		}
	}
}

// each computes each element from that of B.
func each(size int, f func(x uint64) uint64) func(*Call) {
	return func(c *Call) {
		for o := 0; o < c.N; o += size {
			if x, ok := c.B.get(o, size); ok {
				c.R.put(o, size, f(x))
			}
		}
	}
}

// bitwise computes each bit from those of A and B. Bytes of one that decide the result alone are
// what decides tells of a byte: whether it does, and the result.
func bitwise(f func(x, y byte) byte, decides func(x byte, isA bool) (byte, bool)) func(*Call) {
	return func(c *Call) {
		for i := range c.N {
			a, b := c.A.Known>>i&1 != 0, c.B.Known>>i&1 != 0
			switch {
			case a && b:
				c.R.put(i, 1, uint64(f(c.A.B[i], c.B.B[i])))
			case a:
				if r, ok := decides(c.A.B[i], true); ok {
					c.R.put(i, 1, uint64(r))
				}
			case b:
				if r, ok := decides(c.B.B[i], false); ok {
					c.R.put(i, 1, uint64(r))
				}
			}
		}
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// ones is all bits of an element or none.
func ones(b bool) uint64 { return -bit(b) }
