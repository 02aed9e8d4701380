//go:build !linux

package outfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Place is a name in a directory.
type Place struct {
	Kind Kind
	path string
}

// Look finds the place of a path, with links resolved.
func Look(path string) (*Place, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	p := &Place{path: path}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case st.IsDir():
		p.Kind = Dir
	case st.Mode().IsRegular():
		p.Kind = Regular
	default:
		p.Kind = Special
	}
	return p, nil
}

// Close does nothing here.
func (p *Place) Close() {}

// Open opens what is there for writing, if it is Special.
func (p *Place) Open() (*os.File, error) { return os.OpenFile(p.path, os.O_WRONLY, 0) }

// File is a file that has yet to get its name.
type File struct {
	*os.File
	place *Place
	tmp   string // its name until then
}

// Create makes an empty file in the directory, which only candid's user may read.
func (p *Place) Create() (*File, error) {
	f, err := createTemp(filepath.Dir(p.path))
	if err != nil {
		return nil, err
	}
	return &File{f, p, f.Name()}, nil
}

// Unfinished returns the path under which others may find the file before it has its name.
func (f *File) Unfinished() string { return f.tmp }

// Keep gives the file its name. If something has the name, it is replaced with replace, and the error
// wraps fs.ErrExist without.
func (f *File) Keep(replace bool) error {
	if !replace {
		err := os.Link(f.tmp, f.place.path)
		if err == nil {
			f.Drop()
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	err := os.Rename(f.tmp, f.place.path)
	if err == nil {
		f.tmp = ""
	}
	return err
}

// Drop removes the name that the file has before it is kept.
func (f *File) Drop() {
	if f.tmp != "" {
		_ = os.Remove(f.tmp)
		f.tmp = ""
	}
}

// Close closes the file; one that was not kept is gone then.
func (f *File) Close() error {
	err := f.File.Close()
	f.Drop()
	return err
}
