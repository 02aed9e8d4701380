// Package early is the copy of candid that waits to become a command. It does so
// while packages begin, and needs hardly any other, so that it begins before nearly all: the rest
// of candid would take several times as long to begin as the copy needs, and the copy
// belongs to what a short recording costs.
package early

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// Name is the first argument by which a copy of candid knows that it
// is to wait and become another program.
const Name = "candid: waiting to run"

// WordFD and errorFD are descriptors besides stdin, stdout and stderr.
const (
	WordFD = 3 // one byte comes: go; end of file: candid is gone, do not run
	// errorFD takes a Begin's Time, Thread and Process just before the command is executed, and
	// the error number if that fails.
	errorFD = 4
)

// BeginSize is how long the part of the report is that comes before the command.
const BeginSize = 3 * 8

// Exit codes of a launching program for its own failures, as env and timeout
// use them.
const (
	codeFailed        = 125
	codeNotExecutable = 126
	codeNotFound      = 127
)

// The first thread must execute the command: perf events and probes that
// were put on it would stay behind with it, as the kernel lets the thread that
// executes a program take its place. The main goroutine is on it while packages begin.
func init() {
	if len(os.Args) >= 3 && os.Args[0] == Name {
		wait(os.Args[1], os.Args[2:])
	}
}

// Clocks of linux/time.h.
const (
	clockMonotonic  = 1
	clockProcessCPU = 2
	clockThreadCPU  = 3
)

// wait waits for the word and becomes the command; it never returns.
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
