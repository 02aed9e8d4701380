package target

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// OpenFile opens the file behind a mapping for reading. It works for files in other mount
// namespaces and for files that have been removed since. It never returns another file that now has
// the path: the error then wraps ErrStale.
func (p *Process) OpenFile(m Mapping) (*os.File, error) {
	if p.opener != nil {
		return p.opener(m)
	}
	if m.Inode == 0 {
		return nil, fmt.Errorf("open the file of %x-%x: no file is behind it: %w", m.Start, m.End, ErrUnsupported)
	}
	// map_files leads to the very file, but requires CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN, and a
	// mapping that has not been split since.
	name := p.at(fmt.Sprintf("map_files/%x-%x", m.Start, m.End))
	if fd, err := p.openat(name, unix.O_PATH); err == nil {
		f, err := regular(fd, m.Path, nil, false)
		if err == nil {
			return f, nil
		}
	}
	f, err := p.openRoot(m.Path, &m)
	if err != nil {
		return nil, fmt.Errorf("open %s of process %d: %w", m.Path, p.PID, err)
	}
	return f, nil
}

// OpenInRoot opens a regular file by an absolute path in the target's mount
// namespace; symbolic links are followed inside it.
func (p *Process) OpenInRoot(path string) (*os.File, error) {
	f, err := p.openRoot(path, nil)
	if err != nil {
		return nil, fmt.Errorf("open %s of process %d: %w", path, p.PID, err)
	}
	return f, nil
}

// openRoot opens path below the target's root, and fails with ErrStale if it is not the file of the
// mapping m (nil means any).
func (p *Process) openRoot(path string, m *Mapping) (*os.File, error) {
	root, err := p.openat(p.at("root"), unix.O_PATH|unix.O_DIRECTORY)
	ended := false
	if err != nil && m != nil {
		// Programs that end before candid looks at their samples still have names, if candid sees
		// the very files that they saw. (A process that is ending has released its files before it
		// counts as ended.)
		root, err = unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		ended = true
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(root, path, &how)
	if err == unix.ENOSYS || err == unix.EPERM { // before Linux 5.6, or filtered
		fd, err = unix.Openat(root, "./"+path, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, err
	}
	return regular(fd, path, m, ended)
}

// changedSince reports whether a file was changed, or got its inode number, later than a time of
// CLOCK_MONOTONIC: file systems reuse the inode number of a removed file.
func changedSince(st *unix.Stat_t, made uint64) bool {
	var wall, mono unix.Timespec
	if made == 0 || unix.ClockGettime(unix.CLOCK_REALTIME, &wall) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil {
		return false
	}
	return st.Ctim.Nano()-(wall.Nano()-mono.Nano()) > int64(made)
}

// overlayFS is OVERLAYFS_SUPER_MAGIC. Some kernels show the inode of the lower
// layer in /proc/PID/maps and that of the overlay in stat, so that the two need
// not agree there.
const overlayFS = 0x794c7630

// regular turns an O_PATH descriptor, of which it takes ownership, into a file that can be read. It
// checks the type first, because opening a device or a pipe may have effects. The file must be that
// of the mapping m, unless that is nil; strict says that the path is not the target's, so that the
// inode alone does not prove it.
func regular(fd int, name string, m *Mapping, strict bool) (*os.File, error) {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("not a regular file: %w", ErrUnsupported)
	}
	if m != nil && !strict && st.Ino != m.Inode {
		var fs unix.Statfs_t
		if err := unix.Fstatfs(fd, &fs); err != nil || int64(fs.Type) != overlayFS {
			return nil, ErrStale
		}
	}
	if m != nil && strict && changedSince(&st, m.Made) {
		return nil, ErrStale
	}
	real, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if m != nil && strict && (st.Ino != m.Inode || numberOf(st.Dev) != m.Dev) {
		if dev, inode := mappedAs(real, &st); dev != m.Dev || inode != m.Inode {
			unix.Close(real)
			return nil, ErrStale
		}
	}
	return os.NewFile(uintptr(real), name), nil
}
