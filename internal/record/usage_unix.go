//go:build unix

package record

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

type usageOf struct {
	cpu    time.Duration
	maxRSS uint64 // bytes
}

// ownUsage is what candid itself has used so far.
func ownUsage() usageOf {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return usageOf{}
	}
	rss := uint64(ru.Maxrss)
	if runtime.GOOS != "darwin" { // there it is in bytes
		rss *= 1024
	}
	return usageOf{time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), rss}
}

// monotonic is CLOCK_MONOTONIC in ns, the clock of Snapshot.Time.
func monotonic() uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return uint64(ts.Nano())
}
