package native

import "encoding/binary"

// Common instructions are decoded without the general decoder, which takes a hundred nanoseconds
// per instruction: bodies of methods are decoded whole, one for almost every new method in a
// sample.

// form is how the instructions of an opcode are encoded and what they write.
type form uint8

const (
	slow          form = iota
	toReg              // ModRM; the register operand is written
	toRM               // ModRM; the other operand is written if it is a register
	toRMImm8           // the same, with an immediate of a byte
	toRMImm32          // the same, of four bytes
	compare            // ModRM; nothing general is written
	byteStore          // ModRM; a byte is written, to memory
	byteStoreImm8      // the same, with an immediate of a byte
)

// quickOne are opcodes of one byte whose operands have 4 or 8 bytes.
var quickOne = [256]form{
	0x01: toRM, 0x09: toRM, 0x11: toRM, 0x19: toRM, 0x21: toRM, 0x29: toRM, 0x31: toRM, 0x39: compare,
	0x03: toReg, 0x0b: toReg, 0x13: toReg, 0x1b: toReg, 0x23: toReg, 0x2b: toReg, 0x33: toReg, 0x3b: compare,
	0x63: toReg, 0x81: toRMImm32, 0x83: toRMImm8, 0x85: compare, 0x88: byteStore, 0x89: toRM, 0x8b: toReg, 0x8d: toReg,
	0xc1: toRMImm8, 0xc7: toRMImm32, 0xd1: toRM, 0xd3: toRM, 0x80: byteStoreImm8, 0xff: toRM,
}

// extended are the opcodes whose register operand is part of the opcode.
var extended = [256]bool{0x80: true, 0x81: true, 0x83: true, 0xc1: true, 0xc7: true, 0xd1: true, 0xd3: true, 0xff: true}

// Legacy prefixes, as bits.
const (
	bare = 1 << iota
	with66
	withF2
	withF3
)

// quickTwo are the opcodes after 0F: how they are encoded, and with which prefixes.
var quickTwo = func() (t [256]struct {
	form     form
	prefixes uint8
}) {
	set := func(f form, prefixes uint8, ops ...byte) {
		for _, op := range ops {
			t[op].form, t[op].prefixes = f, prefixes
		}
	}
	for op := byte(0x40); op < 0x50; op++ {
		set(toReg, bare, op) // cmov
	}
	set(toReg, bare, 0xb6, 0xb7, 0xbe, 0xbf) // movzx, movsx
	set(compare, bare|with66, 0x1f)          // nop
	// Vector registers.
	set(compare, bare|with66|withF2|withF3, 0x10, 0x11, 0x51, 0x58, 0x59, 0x5a, 0x5c, 0x5d, 0x5e, 0x5f)
	set(compare, bare|with66, 0x28, 0x29, 0x2e, 0x2f, 0x54, 0x55, 0x56, 0x57, 0xef)
	set(compare, bare|with66|withF3, 0x6f, 0x7f)
	return t
}()

// quick fills in the instruction at the beginning of b, at offset at of the code, and returns its
// length; 0 if the general decoder is needed, as for every instruction that uses the stack pointer.
func (v *move) quick(b []byte, at uint32) int {
	if len(b) < 16 {
		return 0
	}
	*v = move{at: at, to: nowhere, reg: nowhereReg, also: [3]uint8{nowhereReg, nowhereReg, nowhereReg}}
	n, prefix, rex := 0, uint8(bare), byte(0)
	switch b[0] {
	case 0x66:
		n, prefix = 1, with66
	case 0xf2:
		n, prefix = 1, withF2
	case 0xf3:
		n, prefix = 1, withF3
	}
	if b[n]&0xf0 == 0x40 {
		rex = b[n]
		n++
	}
	op := b[n]
	n++
	if op == 0x0f {
		op = b[n]
		n++
		if op&0xf0 == 0x80 && prefix == bare && rex == 0 {
			v.jump = true
			return v.leads(n+4, int32(binary.LittleEndian.Uint32(b[n:])))
		}
		if f := quickTwo[op]; f.prefixes&prefix != 0 {
			return v.operands(b, n, f.form, op, rex)
		}
		return 0
	}
	if prefix == with66 && rex == 0 && op == 0x90 {
		return n
	}
	if prefix != bare {
		return 0
	}
	switch {
	case op&0xf0 == 0x50:
		if op&7 == regRSP || rex&^1 != 0 && rex != 0x41 || rex == 0x40 {
			return 0
		}
		if v.op = movePush; op >= 0x58 {
			v.op = movePop
		}
		v.reg = op&7 | rex&1<<3
		return n
	case op&0xf8 == 0xb8 && op&7 != regRSP:
		v.reg = op&7 | rex&1<<3
		if rex&8 != 0 {
			return n + 8
		}
		return n + 4
	case rex != 0:
	case op&0xf0 == 0x70:
		v.jump = true
		return v.leads(n+1, int32(int8(b[n])))
	case op == 0xeb:
		v.jump, v.end = true, true
		return v.leads(n+1, int32(int8(b[n])))
	case op == 0xe9:
		v.jump, v.end = true, true
		return v.leads(n+4, int32(binary.LittleEndian.Uint32(b[n:])))
	case op == 0xe8 && binary.LittleEndian.Uint32(b[n:]) != 0:
		v.call = true
		return n + 4
	case op == 0xc3, op == 0xf4:
		v.end = true
		return n
	case op == 0x90:
		return n
	}
	if extended[op] {
		return v.group(b, n, quickOne[op], op, rex)
	}
	return v.operands(b, n, quickOne[op], op, rex)
}

// group is operands for the opcodes that are extended by the register operand.
func (v *move) group(b []byte, n int, f form, op, rex byte) int {
	modrm := b[n]
	extension, rm, memory := modrm>>3&7, modrm&7|rex&1<<3, modrm>>6 != 3
	if rm == regRSP && !memory {
		return 0
	}
	n += operandLength(b[n:])
	if !memory {
		v.reg = rm
	}
	switch op {
	case 0x80:
		if !memory {
			return 0
		}
	case 0x81, 0x83:
		if extension == 7 { // cmp
			v.reg = nowhereReg
		}
	case 0xc7:
		if extension != 0 {
			return 0 // unknown
		}
	case 0xc1, 0xd1, 0xd3:
		if extension == 6 {
			return 0 // the same
		}
	case 0xff:
		if extension > 2 { // inc, dec and call are the others
			return 0
		}
		if extension == 2 {
			v.call, v.reg = true, nowhereReg
		}
	}
	switch f {
	case toRMImm8, byteStoreImm8:
		n++
	case toRMImm32:
		n += 4
	}
	return n
}

// leads fills in the target of a jump of n bytes.
func (v *move) leads(n int, rel int32) int {
	if to := int64(v.at) + int64(n) + int64(rel); to >= 0 && to < nowhere {
		v.to = uint32(to)
	}
	return n
}

// operands reads the operands at b[n:].
func (v *move) operands(b []byte, n int, f form, op, rex byte) int {
	if f == slow {
		return 0
	}
	modrm := b[n]
	reg, rm, memory := modrm>>3&7|rex&4<<1, modrm&7|rex&1<<3, modrm>>6 != 3
	if reg == regRSP || rm == regRSP && !memory {
		return 0
	}
	n += operandLength(b[n:])
	switch f {
	case toReg:
		if op == 0x8d && !memory {
			return 0
		}
		v.reg = reg
	case toRM:
		if !memory {
			v.reg = rm
		}
	case byteStore:
		if !memory {
			return 0
		}
	case compare:
		if op == 0x1f && modrm>>3&7 != 0 {
			return 0 // unknown
		}
	}
	return n
}
