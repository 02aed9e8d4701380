package dotnet

import (
	"math"

	"golang.org/x/sys/unix"
)

// clockShift returns how many ns the monotonic clock is ahead of the performance counter of Windows.
// Wine reads it from the raw monotonic clock (dlls/ntdll/unix/sync.c: monotonic_counter), which is not
// slewed.
func clockShift() int64 {
	shift := int64(math.MaxInt64)
	for range 3 { // if the thread loses its CPU between the two clocks, the difference is too large
		var raw, monotonic unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &raw) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic) != nil {
			return 0
		}
		shift = min(shift, monotonic.Nano()-raw.Nano())
	}
	return shift
}
