package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxInterfaces bounds how many interfaces are read.
const maxInterfaces = 1024

// Network reads what went through the network interfaces that a process can use.
func Network(pid int) (Interfaces, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	space, err := os.Readlink(dir + "/ns/net")
	if err != nil {
		return Interfaces{}, err
	}
	b, err := os.ReadFile(dir + "/net/dev")
	if err != nil {
		return Interfaces{}, err
	}
	used, err := interfaces(b)
	return Interfaces{space, used}, err
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
