package record

import (
	"time"

	"golang.org/x/sys/windows"
)

// OwnCPU is the CPU time that candid itself has used so far.
func OwnCPU() time.Duration {
	var creation, exit, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &creation, &exit, &kernel, &user) != nil {
		return 0
	}
	ticks := func(f windows.Filetime) uint64 { return uint64(f.HighDateTime)<<32 | uint64(f.LowDateTime) }
	return time.Duration(100 * (ticks(kernel) + ticks(user)))
}

// PeakMemory is 0: it is not known here.
func PeakMemory() uint64 { return 0 }

// monotonic is a clock in ns that never goes back.
func monotonic() uint64 { return uint64(time.Since(processStart)) }

var processStart = time.Now()
