package service

import (
	"os"
	"strconv"
)

// readPlace returns the content of a process's cgroup file, "" if it cannot be read.
func readPlace(pid int) string {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return ""
	}
	defer f.Close()
	var buf [4096]byte
	n, _ := f.Read(buf[:])
	return string(buf[:n])
}
