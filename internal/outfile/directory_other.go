//go:build !linux

package outfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Directory is a directory into which new files are put.
type Directory struct{ path string }

// OpenDirectory opens a directory for new files.
func OpenDirectory(path string) (*Directory, error) {
	p, err := Look(path)
	if err != nil {
		return nil, err
	}
	switch p.Kind {
	case Absent:
		return nil, &os.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	case Dir:
		return &Directory{p.path}, nil
	}
	return nil, &os.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
}

// New makes an empty file that Keep gives its name. The error wraps fs.ErrExist if there is something of
// that name already.
func (d *Directory) New(name string) (*File, error) {
	path := filepath.Join(d.path, name)
	if filepath.Base(name) != name {
		return nil, &os.PathError{Op: "create", Path: path, Err: fs.ErrInvalid}
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	return (&Place{path: path}).Create()
}

// Close does nothing here.
func (d *Directory) Close() {}
