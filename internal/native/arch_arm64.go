package native

import "github.com/candid-profiler/candid/internal/cpu"

const hostArch = cpu.ARM64
