package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fewestFiles is how many files candid must be able to open to look at processes: with fewer, what
// it cannot open would pass for something that is not there.
const fewestFiles = 64

// enoughFiles refuses a command that looks at processes if candid may open too few files.
func enoughFiles(command string) error {
	if n := mostFiles(); n < fewestFiles {
		return &codedError{exitFailed, fmt.Errorf("%s needs %d open files or more, and may have %d: run 'ulimit -n 1024' before it, as root if it is refused", command, fewestFiles, n)}
	}
	return nil
}

// filesHint says how candid can open more files.
func filesHint() string {
	return fmt.Sprintf("; candid may open %d: 'ulimit -n' with a larger number before starting it allows more", mostFiles())
}

// mostFiles returns how many files candid may have open. Go has raised it to what is permitted.
func mostFiles() uint64 {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		return 1 << 20
	}
	return lim.Cur
}
