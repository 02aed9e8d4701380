package record

import (
	"time"

	"golang.org/x/sys/windows"
)

type usageOf struct {
	cpu    time.Duration
	maxRSS uint64
}

// ownUsage is what candid itself has used so far.
func ownUsage() usageOf {
	var creation, exit, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &creation, &exit, &kernel, &user) != nil {
		return usageOf{}
	}
	ticks := func(f windows.Filetime) uint64 { return uint64(f.HighDateTime)<<32 | uint64(f.LowDateTime) }
	return usageOf{cpu: time.Duration(100 * (ticks(kernel) + ticks(user)))}
}

// monotonic is a clock in ns that never goes back.
func monotonic() uint64 { return uint64(time.Since(processStart)) }

var processStart = time.Now()
