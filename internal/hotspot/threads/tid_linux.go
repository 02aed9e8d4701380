package threads

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
)

// innerTID reads a thread's id in its own pid namespace: the last number of the NSpid line of its
// status (proc_pid_status(5), since Linux 4.1).
func innerTID(pid, tid int) (uint32, bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return 0, false
	}
	return lastNSpid(b)
}

// lastNSpid finds the number in the text of a status file.
func lastNSpid(status []byte) (uint32, bool) {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			if ids := bytes.Fields(rest); len(ids) > 0 {
				n, err := strconv.ParseUint(string(ids[len(ids)-1]), 10, 32)
				return uint32(n), err == nil
			}
		}
	}
	return 0, false
}
