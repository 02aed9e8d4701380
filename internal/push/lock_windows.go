package push

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock locks a file for this process; false if another one has locked it. The lock ends with the
// process, however it ends.
func lock(f *os.File) bool {
	var at windows.Overlapped
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at) == nil
}
