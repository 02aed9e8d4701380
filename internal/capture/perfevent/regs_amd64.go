package perfevent

import "github.com/candid-profiler/candid/internal/cpu"

// RegsMask asks for ax, bx, cx, dx, si, di, bp, sp, ip and r8 to r15
// (asm/perf_regs.h of x86).
const RegsMask = 0x1ff | 0xff<<16

// perfToDWARF are the DWARF numbers of perf's first eight registers.
var perfToDWARF = [8]uint8{cpu.RAX, cpu.RBX, cpu.RCX, cpu.RDX, cpu.RSI, cpu.RDI, cpu.RBP, cpu.RSP}

const perfIP = 8

// registers converts perf's registers to ours.
func registers(r *[64]uint64, to *cpu.Registers) {
	to.Arch = cpu.AMD64
	to.Known = 0xffff
	for i, n := range perfToDWARF {
		to.R[n] = r[i]
	}
	for i := range 8 {
		to.R[cpu.R8+i] = r[16+i]
	}
	to.PC = r[perfIP]
}
