package outfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Place is a name in a directory that is held open, so that nobody can put another directory in its
// place.
type Place struct {
	Kind Kind
	dir  int
	name string
	path string
	st   unix.Stat_t // of what is there
}

// maxLinks is MAXSYMLINKS of the kernel.
const maxLinks = 40

// Look finds the place of a path, with links resolved. The error wraps ErrOthers if a link on the
// way, or in a directory such as /tmp the thing itself, belongs to another user than candid's and
// root. The caller closes the Place.
func Look(path string) (*Place, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	p := &Place{path: path, dir: -1}
	if err := p.walk(whole); err != nil {
		p.Close()
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return p, nil
}

// Close closes the directory.
func (p *Place) Close() {
	if p.dir >= 0 {
		_ = unix.Close(p.dir)
	}
	p.dir = -1
}

func (p *Place) walk(path string) error {
	root := func() (err error) {
		p.Close()
		p.dir, err = unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	}
	if err := root(); err != nil {
		return err
	}
	rest := strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		last := strings.Trim(strings.Join(rest, ""), "/.") == "" && name != ".."
		var st unix.Stat_t
		err := unix.Fstatat(p.dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if last && errors.Is(err, unix.ENOENT) {
			p.name, p.Kind = name, Absent
			return nil
		}
		if err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			if !trusted(st.Uid) {
				return fmt.Errorf("the link %s was made by uid %d: %w", name, st.Uid, ErrOthers)
			}
			if links++; links > maxLinks {
				return unix.ELOOP
			}
			var buf [unix.PathMax]byte
			n, err := unix.Readlinkat(p.dir, name, buf[:])
			if err != nil {
				return err
			}
			to := string(buf[:n])
			if strings.HasPrefix(to, "/") {
				if err := root(); err != nil {
					return err
				}
			}
			rest = append(strings.Split(to, "/"), rest...)
			continue
		}
		if last {
			p.name, p.st = name, st
			return p.check()
		}
		next, err := unix.Openat(p.dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		p.Close()
		p.dir = next
	}
	p.Kind = Dir
	return nil
}

// check looks at what is there.
func (p *Place) check() error {
	switch p.st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		p.Kind = Dir
		return nil
	case unix.S_IFREG:
		p.Kind = Regular
	default:
		p.Kind = Special
	}
	if int(p.st.Uid) == os.Geteuid() || p.Kind == Special && p.st.Uid == 0 {
		return nil
	}
	var dir unix.Stat_t
	if err := unix.Fstat(p.dir, &dir); err != nil {
		return err
	}
	if p.Kind == Special || dir.Mode&unix.S_ISVTX != 0 && dir.Mode&0o022 != 0 {
		return fmt.Errorf("uid %d made it: %w", p.st.Uid, ErrOthers)
	}
	return nil
}

// trusted reports whether a link that a user made is followed.
func trusted(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// Open opens what is there for writing, if it is Special.
func (p *Place) Open() (*os.File, error) {
	fd, err := unix.Openat(p.dir, p.name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p.path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Ino != p.st.Ino || st.Dev != p.st.Dev {
		_ = unix.Close(fd)
		return nil, &os.PathError{Op: "open", Path: p.path, Err: errors.New("it was replaced meanwhile")}
	}
	return os.NewFile(uintptr(fd), p.path), nil
}

// File is a file that has yet to get its name.
type File struct {
	*os.File
	place *Place
	tmp   string // its name until then, "" if it has none
}

// Create makes an empty file in the directory, which only candid's user may read. The Place must not
// be used any more.
func (p *Place) Create() (*File, error) {
	p.clean()
	// The directory was opened for looking up names only.
	fd, err := unix.Openat(p.dir, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return &File{File: os.NewFile(uintptr(fd), p.path), place: p}, nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return nil, &os.PathError{Op: "create", Path: p.path, Err: err}
	}
	name := prefix + rand.Text()
	fd, err = unix.Openat(p.dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: p.path, Err: err}
	}
	_ = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) // it is in use
	return &File{File: os.NewFile(uintptr(fd), p.path), place: p, tmp: name}, nil
}

// Name returns the path under which others may find the file before it has its name, "" if they
// cannot.
func (f *File) Unfinished() string {
	if f.tmp == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(f.place.path), f.tmp)
}

// Keep gives the file its name. If something has the name, it is replaced with replace, and the error
// wraps fs.ErrExist without.
func (f *File) Keep(replace bool) error {
	p := f.place
	self := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	link := func(name string) error {
		if f.tmp != "" {
			return unix.Linkat(p.dir, f.tmp, p.dir, name, 0)
		}
		return unix.Linkat(unix.AT_FDCWD, self, p.dir, name, unix.AT_SYMLINK_FOLLOW)
	}
	err := link(p.name)
	if err == nil {
		f.Drop()
		return nil
	}
	if errors.Is(err, fs.ErrExist) && replace {
		// Another user may have put a file there in the meantime.
		var st unix.Stat_t
		if err = unix.Fstatat(p.dir, p.name, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			p.st = st
			if err = p.check(); err == nil && p.Kind != Regular {
				err = fmt.Errorf("%w: it is no file any more", fs.ErrExist)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err == nil {
			if f.tmp == "" {
				f.tmp = prefix + rand.Text()
				if err = unix.Linkat(unix.AT_FDCWD, self, p.dir, f.tmp, unix.AT_SYMLINK_FOLLOW); err != nil {
					f.tmp = ""
				}
			}
			if err == nil {
				err = unix.Renameat(p.dir, f.tmp, p.dir, p.name)
			}
		}
	} else if f.tmp != "" && !errors.Is(err, fs.ErrExist) {
		// The file system knows no links.
		err = unix.Renameat2(p.dir, f.tmp, p.dir, p.name, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
			err = unix.Renameat(p.dir, f.tmp, p.dir, p.name)
		}
	}
	if err != nil {
		return &os.PathError{Op: "create", Path: p.path, Err: err}
	}
	f.tmp = ""
	return nil
}

// Drop removes the name that the file has before it is kept. It is closed by Close.
func (f *File) Drop() {
	if f.tmp != "" {
		_ = unix.Unlinkat(f.place.dir, f.tmp, 0)
		f.tmp = ""
	}
}

// Close closes the file and the directory; a file that was not kept is gone then.
func (f *File) Close() error {
	f.Drop()
	f.place.Close()
	return f.File.Close()
}

const (
	maxCleaned = 1 << 12 // names in a directory that are looked at
	staleAfter = time.Hour
)

// clean removes files that a candid of the same user left in the directory when it was killed.
func (p *Place) clean() {
	fd, err := unix.Openat(p.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	d := os.NewFile(uintptr(fd), p.path)
	defer d.Close()
	names, _ := d.Readdirnames(maxCleaned)
	for _, name := range names {
		if ours(name) {
			p.cleanOne(name)
		}
	}
}

// ours reports whether a name is one that Create or Keep makes: the prefix and rand.Text. A user may
// have files of his own that begin so.
func ours(name string) bool {
	random, ok := strings.CutPrefix(name, prefix)
	return ok && len(random) == 26 && strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

func (p *Place) cleanOne(name string) {
	fd, err := unix.Openat(p.dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_PATH, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() || time.Since(time.Unix(st.Mtim.Unix())) < staleAfter {
		return
	}
	real, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer unix.Close(real)
	if unix.Flock(real, unix.LOCK_EX|unix.LOCK_NB) == nil { // nobody writes to it
		_ = unix.Unlinkat(p.dir, name, 0)
	}
}
