package dotnet

import "golang.org/x/sys/unix"

// clockShift returns how many ns the monotonic clock is ahead of the performance counter of Windows.
// Wine reads it from the raw monotonic clock (dlls/ntdll/unix/sync.c: monotonic_counter), which is not
// slewed.
func clockShift() int64 {
	var raw, monotonic unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &raw) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic) != nil {
		return 0
	}
	return monotonic.Nano() - raw.Nano()
}
