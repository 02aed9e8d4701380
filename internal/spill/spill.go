// Package spill provides space on disk for data that is too large for memory.
package spill

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// File is a file that nobody else can see. It is created by the first write and is gone when candid
// ends, however that ends. It is a profile.Overflow.
type File struct {
	f    *os.File
	name string // "" once it has none any more
	err  error  // why there is none
}

// errClosed is the error of a File after Close.
var errClosed = errors.New("the file is closed")

// WriteAt implements io.WriterAt.
func (s *File) WriteAt(p []byte, off int64) (int, error) {
	if s.f == nil && s.err == nil {
		s.err = s.open()
	}
	if s.err != nil {
		return 0, s.err
	}
	return s.f.WriteAt(p, off)
}

// ReadAt implements io.ReaderAt.
func (s *File) ReadAt(p []byte, off int64) (int, error) {
	if s.f == nil {
		if s.err != nil {
			return 0, s.err
		}
		return 0, io.EOF
	}
	return s.f.ReadAt(p, off)
}

// Close frees the space.
func (s *File) Close() error {
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	s.f, s.err = nil, errClosed
	return err
}

func (s *File) open() error {
	var all []error
	for _, dir := range places() {
		f, err := os.CreateTemp(dir, "candid-*")
		if err != nil {
			all = append(all, err)
			continue
		}
		s.f = f
		if err := os.Remove(f.Name()); err != nil { // on systems where an open file keeps its name
			s.name = f.Name()
		}
		return nil
	}
	return errors.Join(all...)
}

// places returns the directories to try. TMPDIR goes first, as usual; without it /var/tmp is for
// files that may be large, because /tmp often is in memory.
func places() []string {
	tmp := os.TempDir()
	if runtime.GOOS == "windows" || os.Getenv("TMPDIR") != "" {
		return []string{tmp}
	}
	return []string{filepath.Join("/", "var", "tmp"), tmp}
}
