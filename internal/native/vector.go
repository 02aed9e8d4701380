package native

import "github.com/candid-profiler/candid/internal/x86"

// VectorLength returns the length of a VEX or EVEX encoded instruction at the start of b, or 0. The
// decoder's tables have none of them. Such instructions change neither the stack pointer nor,
// except for a few of BMI, a register that a function has to restore. Source: Intel SDM volume 2,
// 2.3 and 2.7.
func VectorLength(b []byte) int {
	if len(b) < 5 {
		return 0
	}
	var n int // bytes before the opcode
	imm := 0
	switch b[0] {
	case 0xc5: // two-byte VEX: map 1
		n = 2
		imm = immediateMap1(b[2])
	case 0xc4:
		n = 3
		switch b[1] & 0x1f {
		case 1:
			imm = immediateMap1(b[3])
		case 2:
		case 3:
			imm = 1
		default:
			return 0
		}
	case 0x62:
		n = 4
		switch b[1] & 7 {
		case 1:
			imm = immediateMap1(b[4])
		case 2, 5, 6:
		case 3:
			imm = 1
		default:
			return 0
		}
	default:
		return 0
	}
	if b[0] == 0xc5 && b[2] == 0x77 || b[0] == 0xc4 && b[1]&0x1f == 1 && b[3] == 0x77 {
		return n + 1 // vzeroupper, vzeroall: no ModRM
	}
	if len(b) < n+2 {
		return 0
	}
	n += 1 + operandLength(b[n+1:])
	n += imm
	if n > len(b) {
		return 0
	}
	return n
}

// OpaqueLength returns the length of an instruction at the start of b that the decoder's tables do
// not have, or 0. Such instructions do not change the stack pointer.
func OpaqueLength(b []byte) int {
	if n := VectorLength(b); n > 0 {
		return n
	}
	if len(b) >= 4 && b[0] == 0xf3 && b[1] == 0x0f && b[2] == 0x1e && b[3] == 0xfa { // endbr64
		return 4
	}
	if _, err := x86.Decode(b); err != nil {
		return threeByteLength(b)
	}
	return 0
}

// immediateMap1 returns how many immediate bytes follow an instruction of opcode map 1.
func immediateMap1(op byte) int {
	switch op {
	case 0x70, 0x71, 0x72, 0x73, 0xc2, 0xc4, 0xc5, 0xc6:
		return 1
	}
	return 0
}

// threeByteLength returns the length of an instruction of the opcode maps 0F 38 and 0F 3A, or 0.
// All of them are encoded alike. Those that the decoder's tables do not have (SHA, ADX and others)
// neither change the stack pointer nor are used for registers that a function has to restore.
func threeByteLength(b []byte) int {
	n := 0
	for n < len(b) && (b[n] == 0x66 || b[n] == 0xf2 || b[n] == 0xf3) {
		n++
	}
	if n < len(b) && b[n]&0xf0 == 0x40 {
		n++
	}
	if len(b) < n+4 || b[n] != 0x0f || b[n+1] != 0x38 && b[n+1] != 0x3a {
		return 0
	}
	imm := int(b[n+1]&2) >> 1
	n += 3 + operandLength(b[n+3:])
	if n += imm; n > len(b) {
		return 0
	}
	return n
}

// operandLength returns the length of ModRM, SIB and displacement at the start of b, which holds at
// least the ModRM byte.
func operandLength(b []byte) int {
	mod, rm := b[0]>>6, b[0]&7
	n := 1
	if mod != 3 && rm == 4 {
		if mod == 0 && len(b) > 1 && b[1]&7 == 5 {
			n += 4
		}
		n++
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && rm == 5:
		n += 4
	}
	return n
}
