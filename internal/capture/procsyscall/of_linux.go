package procsyscall

import (
	"os"
	"strconv"
)

// Of returns where a thread waits now; false if that is not available: it has ended, or it is another
// user's.
func Of(pid, tid int) (Place, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/syscall")
	if err != nil {
		return Place{}, false
	}
	return Parse(b)
}
