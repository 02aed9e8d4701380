package record

import (
	"os"

	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/winsys"
)

// PeakMemory returns the most memory that candid itself has held so far, in bytes; 0 if that is not
// known.
func PeakMemory() uint64 {
	_, peak, _ := hostinfo.Memory(os.Getpid())
	return peak
}

// monotonic returns the performance counter in ns, the clock of Snapshot.Time.
func monotonic() uint64 { return winsys.Clock() }
