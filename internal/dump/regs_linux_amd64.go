package dump

import "github.com/candid-profiler/candid/internal/cpu"

// knownSP are the registers that the kernel tells of a sleeping thread besides
// its pc.
const knownSP = 1 << cpu.RSP
