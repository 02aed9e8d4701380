package hostinfo

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxInterfaces bounds how many interfaces are read.
const maxInterfaces = 1024

// NetworkSpace names the network namespace of a process: those of the same name use the
// same interfaces.
func NetworkSpace(pid int) (string, error) {
	return os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/net")
}

// Network reads what went through the network interfaces that a process can use.
func Network(pid int) ([]Interface, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/net/dev")
	if err != nil {
		return nil, err
	}
	return interfaces(b)
}

// interfaces reads /proc/PID/net/dev (proc_pid_net(5)): two lines of titles, then a line
// for each interface, NAME: with eight numbers of what came and eight of what went, the
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
