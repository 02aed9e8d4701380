package jfr

import (
	"os"
	"time"
)

// Lately is how recent the last write to a file is if the file counts as still being written, where
// nothing better is known.
const Lately = 5 * time.Second

// ChangedLately reports whether a file was written to lately.
func ChangedLately(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && time.Since(st.ModTime()) < Lately
}
