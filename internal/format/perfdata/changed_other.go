//go:build !linux

package perfdata

import (
	"os"
	"time"
)

// changedAt returns when a file's content was last changed.
func changedAt(st os.FileInfo) time.Time { return st.ModTime() }
