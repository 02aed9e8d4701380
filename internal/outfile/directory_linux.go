package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Directory is a directory into which new files are put. It is held open, so that nobody can put
// another directory in its place.
type Directory struct {
	fd   int
	path string
}

// OpenDirectory opens a directory for new files. The error wraps ErrOthers if a link on the way belongs
// to another user than candid's and root, or if another user could put files of his own in the place of
// new ones: the directory is his, or everybody may write to it and it is not sticky.
func OpenDirectory(path string) (*Directory, error) {
	p, err := Look(path)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	fail := func(err error) (*Directory, error) { return nil, &os.PathError{Op: "open", Path: path, Err: err} }
	switch p.Kind {
	case Absent:
		return fail(unix.ENOENT)
	case Dir:
	default:
		return fail(unix.ENOTDIR)
	}
	name := p.name
	if name == "" { // the path ends with .. or is /
		name = "."
	}
	fd, err := unix.Openat(p.dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	d := &Directory{fd: fd, path: path}
	if err := d.check(); err != nil {
		d.Close()
		return fail(err)
	}
	return d, nil
}

// check refuses a directory in which another user than root may exchange files.
func (d *Directory) check() error {
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil {
		return err
	}
	switch {
	case !trusted(st.Uid):
		return fmt.Errorf("the directory is uid %d's: %w", st.Uid, ErrOthers)
	case st.Mode&0o002 != 0 && st.Mode&unix.S_ISVTX == 0:
		return fmt.Errorf("everybody may write to the directory, and it is not sticky: %w", ErrOthers)
	}
	return nil
}

// New makes an empty file without a name, which only candid's user may read; Keep gives it its name. The
// error wraps fs.ErrExist if there is something of that name already.
func (d *Directory) New(name string) (*File, error) {
	path := filepath.Join(d.path, name)
	fail := func(err error) (*File, error) { return nil, &os.PathError{Op: "create", Path: path, Err: err} }
	if strings.Contains(name, "/") || name == "" || name == "." || name == ".." {
		return fail(unix.EINVAL)
	}
	var st unix.Stat_t
	switch err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case err == nil:
		return fail(fs.ErrExist)
	case !errors.Is(err, unix.ENOENT):
		return fail(err)
	}
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	p := &Place{path: path, dir: fd, name: name}
	f, err := p.Create()
	if err != nil {
		p.Close()
		return nil, err
	}
	return f, nil
}

// Close closes the directory; files that were made in it stay open.
func (d *Directory) Close() {
	if d.fd >= 0 {
		_ = unix.Close(d.fd)
	}
	d.fd = -1
}
