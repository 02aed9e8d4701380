package record

import (
	"fmt"
	"os"
	"strings"
)

// commOf returns the operating system's name for a thread that belongs to no target, "" if it has
// ended.
func commOf(pid, tid uint32) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(b), "\n")
}
