package bpfcopy

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/cpu"
)

// regWords is the number of words in struct user_regs: x0 to x30, sp, pc, pstate (asm/ptrace.h of
// arm64).
const regWords = 34

func decodeRegs(b []byte, r *cpu.Registers) {
	_ = b[8*regWords-1]
	r.Arch, r.Known = cpu.ARM64, cpu.AllKnown
	for i := range 32 {
		r.R[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	r.PC = binary.LittleEndian.Uint64(b[8*32:])
}

// belowSP is how many bytes below its stack pointer a leaf function may keep data.
const belowSP = 0

// baseIsTop reports whether a thread's descriptor is at base: here nothing shows that it is not.
func baseIsTop(_, _ uint64) bool { return true }

// registerWord returns the word of struct user_regs that holds a register, by DWARF number; -1 if
// none does.
func registerWord(n uint32) int {
	if n < 32 {
		return int(n)
	}
	return -1
}
