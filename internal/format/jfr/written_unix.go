//go:build unix

package jfr

import (
	"errors"
	"os"
	"syscall"
)

// MarkWritten tells other candid processes that a file is being written, for as long as it is open:
// kill -9 ends that too. Programs that do not ask notice nothing.
func MarkWritten(f *os.File) {
	// Some file systems have no such locks: then others use the time of the last change.
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// WrittenNow reports whether a process has marked the file as being written.
func WrittenNow(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true
	}
	return err != nil && ChangedLately(f)
}
