//go:build unix

package record

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// OwnCPU is the CPU time that candid itself has used so far.
func OwnCPU() time.Duration {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// PeakMemory is the most memory that candid itself has held so far, bytes; 0 if
// that is not known. To ask costs ten times what OwnCPU does.
func PeakMemory() uint64 {
	if peak, ok := peakOf("/proc/self/status"); ok {
		return peak
	}
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" { // there it is in bytes
		return uint64(ru.Maxrss)
	}
	return uint64(ru.Maxrss) * 1024
}

// peakOf reads the most memory that a Linux process has held, bytes. What
// getrusage tells may be that of the program from which candid was started.
func peakOf(status string) (bytes uint64, ok bool) {
	b, err := os.ReadFile(status)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 54)
			return kib * 1024, err == nil
		}
	}
	return 0, false
}

// monotonic is CLOCK_MONOTONIC in ns, the clock of Snapshot.Time.
func monotonic() uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return uint64(ts.Nano())
}
