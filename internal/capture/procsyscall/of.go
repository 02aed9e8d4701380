package procsyscall

import (
	"os"
	"strconv"
)

// Of reads where a thread waits now; false if that cannot be had: it has ended, it
// is somebody else's, or this is not Linux.
func Of(pid, tid int) (Place, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/syscall")
	if err != nil {
		return Place{}, false
	}
	return Parse(b)
}
