package hostinfo

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxInterfaces bounds how many interfaces are read.
const maxInterfaces = 1024

// NetworkSpace returns the name of a process's network namespace: processes with the same name use
// the same interfaces.
func NetworkSpace(pid int) (string, error) {
	return os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/net")
}

// Network reads how much was received and sent on the network interfaces that a process can use.
func Network(pid int) ([]Interface, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/net/dev")
	if err != nil {
		return nil, err
	}
	return interfaces(b)
}

// interfaces reads /proc/PID/net/dev (proc_pid_net(5)): two header lines, then a line for each
// interface, NAME: followed by eight numbers for what was received and eight for what was sent, the
// bytes first.
func interfaces(b []byte) ([]Interface, error) {
	var out []Interface
	n := 0
	for line := range strings.Lines(string(b)) {
		if n++; n <= 2 {
			continue
		}
		at := strings.LastIndexByte(line, ':')
		if at < 0 {
			return out, fmt.Errorf("net/dev has the line %.60q", line)
		}
		words := strings.Fields(line[at+1:])
		if len(words) < 9 {
			return out, fmt.Errorf("net/dev has the line %.60q", line)
		}
		received, err1 := strconv.ParseUint(words[0], 10, 64)
		sent, err2 := strconv.ParseUint(words[8], 10, 64)
		if err1 != nil || err2 != nil {
			return out, fmt.Errorf("net/dev has the line %.60q", line)
		}
		if len(out) == maxInterfaces {
			break
		}
		out = append(out, Interface{strings.TrimSpace(line[:at]), received, sent})
	}
	return out, nil
}
