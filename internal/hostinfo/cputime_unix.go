//go:build unix

package hostinfo

import (
	"time"

	"golang.org/x/sys/unix"
)

// OwnCPU is the CPU time that this process has used so far; 0 where the system does not
// say.
func OwnCPU() time.Duration {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
