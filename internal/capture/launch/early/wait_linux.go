// Package early is the copy of candid that waits to become a command. It does so during package
// initialization, and has hardly any imports, so that it is initialized before nearly all other
// packages: initializing the rest of candid would take several times as long as the copy needs, and
// the copy is part of the cost of a short recording.
package early

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// Name is the first argument by which a copy of candid knows that it should wait and then become
// another program.
const Name = "candid: waiting to run"

// WordFD and errorFD are descriptors besides stdin, stdout and stderr.
const (
	WordFD = 3 // one byte: go; end of file: candid is gone, do not run
	// errorFD receives a Begin's Time, Thread and Process just before the command is executed, and
	// the error number if that fails.
	errorFD = 4
)

// BeginSize is the size in bytes of the part of the report that precedes the command.
const BeginSize = 3 * 8

// Exit codes of a launching program for its own failures, as env and timeout
// use them.
const (
	codeFailed        = 125
	codeNotExecutable = 126
	codeNotFound      = 127
)

// The first thread must execute the command: the kernel lets the thread that executes a program
// take the first one's place, so perf events and probes on another first thread would be lost with
// it. The main goroutine runs on that thread during package initialization.
func init() {
	if len(os.Args) >= 3 && os.Args[0] == Name {
		wait(os.Args[1], os.Args[2:])
	}
}

// Clock numbers from linux/time.h.
const (
	clockMonotonic  = 1
	clockProcessCPU = 2
	clockThreadCPU  = 3
)

// wait waits for the word to go and becomes the command; it never returns.
func wait(path string, argv []string) {
	syscall.CloseOnExec(WordFD)
	syscall.CloseOnExec(errorFD)
	var b [1]byte
	for {
		n, err := syscall.Read(WordFD, b[:])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if n != 1 || err != nil {
			os.Exit(codeFailed)
		}
		break
	}
	var begin [BeginSize]byte
	for i, id := range []uintptr{clockMonotonic, clockThreadCPU, clockProcessCPU} {
		binary.LittleEndian.PutUint64(begin[i*8:], clock(id))
	}
	_, _ = syscall.Write(errorFD, begin[:])
	err := syscall.Exec(path, argv, os.Environ())
	errno := syscall.EIO
	errors.As(err, &errno)
	var report [4]byte
	binary.LittleEndian.PutUint32(report[:], uint32(errno))
	_, _ = syscall.Write(errorFD, report[:])
	if errno == syscall.ENOENT {
		os.Exit(codeNotFound)
	}
	os.Exit(codeNotExecutable)
}

func clock(id uintptr) uint64 {
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return uint64(ts.Nano())
}
