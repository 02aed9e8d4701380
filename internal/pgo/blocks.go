package pgo

import (
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/x86"
)

// instKind is what an instruction does to the flow of control.
type instKind uint8

const (
	plain    instKind = iota
	jump              // does not go on at the next instruction
	branch            // may go on there
	call              // of an address in the instruction
	callsAny          // of an address that is computed
)

// inst is one instruction.
type inst struct {
	addr   uint64
	size   uint8
	kind   instKind
	target uint64 // of jump, branch and call; 0: computed
}

// Bounds.
const (
	maxFunctionCode = 4 << 20 // bytes; a longer function is cut off
)

// decode reads the instructions of code, which starts at an address. Bytes that are no known
// instruction are skipped.
func decode(machine Machine, code []byte, addr uint64, out []inst) []inst {
	if machine == ARM64 {
		for ; len(code) >= 4; code, addr = code[4:], addr+4 {
			out = append(out, decodeARM(binary.LittleEndian.Uint32(code), addr))
		}
		return out
	}
	for len(code) > 0 {
		in := decodeX86(code, addr)
		out = append(out, in)
		code, addr = code[in.size:], addr+uint64(in.size)
	}
	return out
}

// decodeX86 reads one instruction.
func decodeX86(code []byte, addr uint64) inst {
	in := inst{addr: addr, size: 1}
	if n := native.VectorLength(code); n > 0 && n <= len(code) {
		in.size = uint8(n)
		return in
	}
	// endbr64, which is a nop to processors without control-flow enforcement.
	if len(code) >= 4 && binary.LittleEndian.Uint32(code) == 0xfa1e0ff3 {
		in.size = 4
		return in
	}
	// notrack before an indirect jump or call.
	prefix := 0
	if len(code) > 2 && code[0] == 0x3e && (code[1] == 0xff || code[1]&0xf0 == 0x40 && code[2] == 0xff) {
		prefix = 1
	}
	x, err := x86.Decode(code[prefix:])
	if err != nil || x.Len == 0 || x.Len+prefix > len(code) {
		return in
	}
	in.size = uint8(x.Len + prefix)
	next := addr + uint64(in.size)
	rel, relative := x.Args[0].(x86asm.Rel)
	switch x.Op {
	case x86asm.JMP:
		in.kind = jump
	case x86asm.RET, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.UD2, x86asm.UD1, x86asm.HLT:
		in.kind = jump
		return in
	case x86asm.CALL:
		if in.kind = callsAny; relative {
			in.kind = call
		}
	case x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JCXZ, x86asm.JE, x86asm.JECXZ, x86asm.JG, x86asm.JGE, x86asm.JL,
		x86asm.JLE, x86asm.JNE, x86asm.JNO, x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JRCXZ, x86asm.JS, x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE:
		in.kind = branch
	default:
		return in
	}
	if relative {
		in.target = next + uint64(int64(rel))
	}
	return in
}

// decodeARM reads one A64 instruction (Arm ARM, C4.1, branches).
func decodeARM(w uint32, addr uint64) inst {
	in := inst{addr: addr, size: 4}
	rel := func(shift, bits uint) uint64 {
		v := int64(w>>shift) << (64 - bits) >> (64 - bits)
		return addr + uint64(v*4)
	}
	switch {
	case w>>26 == 0b000101:
		in.kind, in.target = jump, rel(0, 26)
	case w>>26 == 0b100101:
		in.kind, in.target = call, rel(0, 26)
	case w>>24 == 0x54, w>>25&0x3f == 0b011010: // b.cond, cbz and cbnz
		in.kind, in.target = branch, rel(5, 19)
	case w>>25&0x3f == 0b011011: // tbz and tbnz
		in.kind, in.target = branch, rel(5, 14)
	case w>>25 == 0b1101011: // by register
		switch w >> 21 & 0xf {
		case 1, 9:
			in.kind = callsAny
		default:
			in.kind = jump
		}
	}
	return in
}

// block is a run of instructions that are executed one after the other.
type block struct {
	first, last int     // indexes of its instructions; last is behind it
	weight      float64 // how often it ran, in samples for each instruction
	samples     float64
}

// blocksOf divides a function's instructions into blocks. Calls do not end a block: they return.
func blocksOf(code []inst) []block {
	if len(code) == 0 {
		return nil
	}
	lo, hi := code[0].addr, code[len(code)-1].addr+uint64(code[len(code)-1].size)
	leads := map[uint64]bool{}
	for i := range code {
		if in := &code[i]; (in.kind == jump || in.kind == branch) && in.target >= lo && in.target < hi {
			leads[in.target] = true
		}
	}
	var out []block
	first := 0
	for i := range code {
		ends := code[i].kind == jump || code[i].kind == branch
		if i+1 == len(code) || ends || leads[code[i+1].addr] {
			out = append(out, block{first: first, last: i + 1})
			first = i + 1
		}
	}
	return out
}
