//go:build unix

package hostinfo

import (
	"time"

	"golang.org/x/sys/unix"
)

// OwnCPU returns the CPU time that this process has used so far; 0 if the system does not report
// it.
func OwnCPU() time.Duration {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
