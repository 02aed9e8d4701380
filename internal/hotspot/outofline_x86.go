package hotspot

import "encoding/binary"

// Barrier stubs of collectors lie behind a compiled method's code. They push the
// live registers, call the collector and jump back, so inside them, and in the
// frames of what they call, the stack pointer is lower than the frame's. How much
// lower is what the instructions up to the jump back will take off again.

// Bounds on the code that is followed.
const (
	maxFollowed     = 96
	maxFollowedCode = 2048
)

// lowered says by how many bytes the stack pointer is below the frame's at off in
// the code of b: 0 where the code from there on is not the rest of such a stub.
func (vm *VM) lowered(b *blob, off int) uint64 {
	code := vm.codeOf(b)
	var by int64
	for i, start := 0, off; i < maxFollowed && off >= 0 && off < len(code) && off-start < maxFollowedCode; i++ {
		n, delta, jump := decodeX86(code[off:])
		if n == 0 {
			return 0
		}
		by += delta
		off += n
		switch {
		case jump == 0:
		case jump > 0 && jump <= 16:
			off += jump // over the other way of calling, for an aligned stack
		case jump < 0 && off+jump >= 0 && off+jump < start:
			if by <= 0 || by > maxFrame || by&7 != 0 {
				return 0
			}
			return uint64(by)
		default:
			return 0
		}
	}
	return 0
}

// decodeX86 measures an instruction of those that barrier stubs are made of: n is
// its length, 0 if it is none of them; delta what it adds to rsp; jump the
// distance of an unconditional jump from the instruction's end.
func decodeX86(c []byte) (n int, delta int64, jump int) {
	at := func(i int) byte {
		if i < len(c) {
			return c[i]
		}
		return 0
	}
	imm32 := func(i int) int {
		if i+4 <= len(c) {
			return int(int32(binary.LittleEndian.Uint32(c[i:])))
		}
		return 0
	}
	i := 0
	for i < 2 && (at(i) == 0x66 || at(i) == 0xF2 || at(i) == 0xF3) {
		i++
	}
	switch at(i) {
	case 0xC5: // VEX
		if at(i+2) == 0x77 {
			return i + 3, 0, 0
		}
		return i + 3 + modrmLen(c, i+3), 0, 0
	case 0xC4:
		return i + 4 + modrmLen(c, i+4), 0, 0
	case 0x62: // EVEX
		return i + 5 + modrmLen(c, i+5), 0, 0
	}
	wide := false
	if at(i)&0xF0 == 0x40 {
		wide = at(i)&8 != 0
		i++
	}
	op := at(i)
	i++
	switch {
	case op&0xF8 == 0x50:
		return i, -8, 0
	case op&0xF8 == 0x58:
		return i, 8, 0
	case op&0xF8 == 0xB8: // mov register, immediate
		if wide {
			return i + 8, 0, 0
		}
		return i + 4, 0, 0
	case op&0xF0 == 0x70: // jcc
		return i + 1, 0, 0
	case op == 0xE8:
		return i + 4, 0, 0
	case op == 0xE9:
		return i + 4, 0, imm32(i)
	case op == 0xEB:
		return i + 1, 0, int(int8(at(i)))
	case op == 0x90:
		return i, 0, 0
	case op == 0x89, op == 0x8B, op == 0x8D, op == 0x87, op == 0x85, op == 0x39, op == 0x3B, op == 0x33, op == 0x31, op == 0x03, op == 0x2B:
		return i + modrmLen(c, i), 0, 0
	case op == 0xFF && at(i)&0x38 == 0x10: // call
		return i + modrmLen(c, i), 0, 0
	case op == 0x83:
		n = i + modrmLen(c, i) + 1
		switch at(i) {
		case 0xEC:
			delta = -int64(int8(at(i + 1)))
		case 0xC4:
			delta = int64(int8(at(i + 1)))
		}
		return n, delta, 0
	case op == 0x81:
		n = i + modrmLen(c, i) + 4
		switch at(i) {
		case 0xEC:
			delta = -int64(imm32(i + 1))
		case 0xC4:
			delta = int64(imm32(i + 1))
		}
		return n, delta, 0
	case op == 0xF7 && at(i)&0x38 == 0: // test register, immediate
		return i + modrmLen(c, i) + 4, 0, 0
	case op == 0xF6 && at(i)&0x38 == 0:
		return i + modrmLen(c, i) + 1, 0, 0
	case op == 0xC1:
		return i + modrmLen(c, i) + 1, 0, 0
	case op == 0x0F:
		switch op2 := at(i); {
		case op2&0xF0 == 0x80: // jcc
			return i + 5, 0, 0
		case op2 == 0x10, op2 == 0x11, op2 == 0x28, op2 == 0x29, op2 == 0x6E, op2 == 0x6F, op2 == 0x7E, op2 == 0x7F, op2 == 0xB6, op2 == 0xB7, op2 == 0x1F:
			return i + 1 + modrmLen(c, i+1), 0, 0
		}
	}
	return 0, 0, 0
}

// modrmLen is the length of the operand bytes at off: ModRM, SIB, displacement.
func modrmLen(c []byte, off int) int {
	if off >= len(c) {
		return 1
	}
	m := c[off]
	n := 1
	if m>>6 == 3 {
		return n
	}
	if m&7 == 4 {
		n++
		if m>>6 == 0 && off+1 < len(c) && c[off+1]&7 == 5 {
			return n + 4
		}
	}
	switch m >> 6 {
	case 0:
		if m&7 == 5 {
			n += 4
		}
	case 1:
		n++
	case 2:
		n += 4
	}
	return n
}
