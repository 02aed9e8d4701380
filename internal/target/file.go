package target

import (
	"io"
	"io/fs"
)

// File is a file that a process has mapped, or what was saved of one. *os.File implements it. ReadAt
// may be called from several goroutines.
type File interface {
	io.ReaderAt
	io.Closer
	// Stat returns at least the size; for a file of this machine, also its identity.
	Stat() (fs.FileInfo, error)
	// Name returns the path, for messages.
	Name() string
}
