//go:build unix

package push

import (
	"os"
	"syscall"
)

// lock locks a file for this process; false if another one has locked it. The lock ends with the
// process, however it ends.
func lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
