package hostinfo

import (
	"time"

	"golang.org/x/sys/windows"
)

// OwnCPU returns the CPU time that this process has used so far; 0 if the system does not report
// it.
func OwnCPU() time.Duration {
	var creation, exit, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &creation, &exit, &kernel, &user) != nil {
		return 0
	}
	ticks := func(f windows.Filetime) uint64 { return uint64(f.HighDateTime)<<32 | uint64(f.LowDateTime) }
	return time.Duration(100 * (ticks(kernel) + ticks(user)))
}
