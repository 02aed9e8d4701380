package dump

import "github.com/candid-profiler/candid/internal/cpu"

// knownSP are the registers that the kernel reports of a sleeping thread besides its pc.
const knownSP = 1 << cpu.XSP
