package perfevent

import "github.com/candid-profiler/candid/internal/cpu"

// RegsMask asks for x0 to x30, sp and pc (asm/perf_regs.h of arm64).
const RegsMask = 1<<33 - 1

// registers converts perf's registers to ours.
func registers(r *[64]uint64, to *cpu.Registers) {
	to.Arch = cpu.ARM64
	to.Known = cpu.AllKnown
	copy(to.R[:], r[:32])
	to.PC = r[32]
}
