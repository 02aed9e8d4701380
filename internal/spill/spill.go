// Package spill is room on disk for what there is too much of for memory.
package spill

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// File is a file that nobody else sees, which begins with the first write and is gone with
// candid, however that ends. It is a profile.Overflow.
type File struct {
	f    *os.File
	name string // "" once it has none any more
	err  error  // why there is none
}

// errClosed is what a File says behind its end.
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

// Close lets go of the room.
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
		if err := os.Remove(f.Name()); err != nil { // where an open file keeps its name
			s.name = f.Name()
		}
		return nil
	}
	return errors.Join(all...)
}

// places are the directories to try. What TMPDIR says goes first, as everywhere; without it
// /var/tmp is for files that may be large, where /tmp often is memory.
func places() []string {
	tmp := os.TempDir()
	if runtime.GOOS == "windows" || os.Getenv("TMPDIR") != "" {
		return []string{tmp}
	}
	return []string{filepath.Join("/", "var", "tmp"), tmp}
}
