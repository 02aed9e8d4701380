//go:build unix

package record

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/hostinfo"
)

// PeakMemory returns the most memory that candid itself has held so far, in bytes; 0 if that is not
// known. The call costs ten times what hostinfo.OwnCPU does. The value of getrusage may be that of
// the program from which candid was started.
func PeakMemory() uint64 {
	if _, peak, err := hostinfo.Memory(os.Getpid()); err == nil {
		return peak
	}
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" { // there the unit is bytes
		return uint64(ru.Maxrss)
	}
	return uint64(ru.Maxrss) * 1024
}

// monotonic returns CLOCK_MONOTONIC in ns, the clock of Snapshot.Time.
func monotonic() uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return uint64(ts.Nano())
}
