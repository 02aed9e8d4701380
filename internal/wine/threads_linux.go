package wine

import (
	"os"
	"strconv"
)

// threads lists the threads of a process.
func threads(pid int) (map[uint32]bool, error) {
	list, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil, err
	}
	out := map[uint32]bool{}
	for _, e := range list {
		if n, err := strconv.ParseUint(e.Name(), 10, 32); err == nil {
			out[uint32(n)] = true
		}
	}
	return out, nil
}
