package bpfcopy

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/cpu"
)

// regWords is the number of words in struct user_regs.
const regWords = 21

// regOrder maps struct pt_regs of x86-64 (asm/ptrace.h) to DWARF numbers; its words 15 and 17 to 20
// are orig_ax, cs, flags, sp, ss.
var regOrder = [15]uint8{
	cpu.R15, cpu.R14, cpu.R13, cpu.R12, cpu.RBP, cpu.RBX, cpu.R11, cpu.R10,
	cpu.R9, cpu.R8, cpu.RAX, cpu.RCX, cpu.RDX, cpu.RSI, cpu.RDI,
}

func decodeRegs(b []byte, r *cpu.Registers) {
	_ = b[8*regWords-1]
	r.Arch, r.Known = cpu.AMD64, 0xffff
	for i, n := range regOrder {
		r.R[n] = binary.LittleEndian.Uint64(b[8*i:])
	}
	r.PC = binary.LittleEndian.Uint64(b[8*16:])
	r.Flags, r.FlagsKnown = binary.LittleEndian.Uint64(b[8*18:]), true
	r.R[cpu.RSP] = binary.LittleEndian.Uint64(b[8*19:])
}

// belowSP is how many bytes below its stack pointer a leaf function may keep data.
const belowSP = 128

// baseIsTop reports whether a thread's descriptor, which C libraries begin with a pointer to
// itself, is at base.
func baseIsTop(base, self uint64) bool { return self == base }

// registerWord returns the word of struct user_regs that holds a register, by DWARF number; -1 if
// none does.
func registerWord(n uint32) int {
	for i, r := range regOrder {
		if uint32(r) == n {
			return i
		}
	}
	if n == cpu.RSP {
		return 19
	}
	return -1
}
