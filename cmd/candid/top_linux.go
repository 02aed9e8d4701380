package main

import (
	"bytes"
	"fmt"
	"os"
)

// stateWords are the meanings of the state letters in proc_pid_stat(5).
var stateWords = map[byte]string{
	'R': "running", 'S': "sleeping", 'D': "disk", 'T': "stopped", 't': "traced", 'Z': "ended", 'X': "ended", 'I': "idle", 'P': "parked",
}

// threadState returns what a thread is doing now.
func threadState(pid, tid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	if err != nil {
		return "ended"
	}
	// The name, in parentheses, may contain anything.
	at := bytes.LastIndexByte(b, ')')
	if at < 0 || at+2 >= len(b) {
		return "-"
	}
	if w, known := stateWords[b[at+2]]; known {
		return w
	}
	return "-"
}
