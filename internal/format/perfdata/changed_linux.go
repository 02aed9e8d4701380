package perfdata

import (
	"os"
	"syscall"
	"time"
)

// changedAt returns when a file's content, or its name, was last changed: package managers set the
// modification time of an installed file to the time at which it was made.
func changedAt(st os.FileInfo) time.Time {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return time.Unix(sys.Ctim.Unix())
	}
	return st.ModTime()
}
