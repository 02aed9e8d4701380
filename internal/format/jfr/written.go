package jfr

import (
	"os"
	"time"
)

// Lately is within how long something was written to that still is, where nothing better
// tells.
const Lately = 5 * time.Second

// ChangedLately reports whether a file was written to lately.
func ChangedLately(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && time.Since(st.ModTime()) < Lately
}
