package target

import "github.com/candid-profiler/candid/internal/winsys"

// ownMachine is the processor that this program is built for.
const ownMachine = winsys.MachineARM64
