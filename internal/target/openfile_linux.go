package target

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/safeopen"
)

// OpenFile opens the file behind a mapping for reading. It works for files in other mount
// namespaces and for files that have been removed since. It never returns another file that now has
// the path: the error then wraps ErrStale.
func (p *Process) OpenFile(m Mapping) (File, error) {
	if p.saved != nil {
		return p.saved.Open(m)
	}
	if m.Inode == 0 {
		return nil, fmt.Errorf("open the file of %x-%x: no file is behind it: %w", m.Start, m.End, ErrUnsupported)
	}
	if !p.mayOpen(m.Dev) {
		return nil, fmt.Errorf("open %s of process %d: its file system does not answer: %w", m.Path, p.PID, ErrUnsupported)
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
	if m.Memfd() { // its path leads nowhere, but it may be the program
		if fd, err := p.openat(p.at("exe"), unix.O_PATH); err == nil {
			return regular(fd, m.Path, &m, false)
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
	if a := p.sys.access; a != nil && a.silent.Load() {
		return nil, fmt.Errorf("open %s of process %d: a file system that it uses does not answer: %w", path, p.PID, ErrUnsupported)
	}
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
	fd, err := safeopen.At(root, path, false)
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

// regular turns an O_PATH descriptor, of which it takes ownership, into a file that can be read. The
// file must be that of the mapping m, unless that is nil; strict says that the path is not the
// target's, so that the file may have been another one when it was mapped.
func regular(fd int, name string, m *Mapping, strict bool) (*os.File, error) {
	defer unix.Close(fd)
	f, err := safeopen.Regular(fd, name)
	if errors.Is(err, safeopen.ErrKind) {
		return nil, fmt.Errorf("%w: %w", err, ErrUnsupported)
	}
	if err != nil || m == nil {
		return f, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, err
	}
	if strict && changedSince(&st, m.Made) {
		f.Close()
		return nil, ErrStale
	}
	if st.Ino != m.Inode || numberOf(st.Dev) != m.Dev {
		if dev, inode := mappedAs(int(f.Fd()), &st); dev != m.Dev || inode != m.Inode {
			f.Close()
			return nil, ErrStale
		}
	}
	return f, nil
}

// OpenPerfMap opens the file in which the process's runtime names the code that it generates:
// /tmp/perf-PID.map in the target's root, with the process's own number. Anybody may write to that
// directory, so the file is used only if it belongs to the process's user, or to root and may be
// read by everybody; links are not followed. The error wraps fs.ErrNotExist if there is no file.
func (p *Process) OpenPerfMap() (*os.File, error) {
	path := "/tmp/perf-" + strconv.Itoa(p.NamespacePID()) + ".map"
	f, err := p.openOwn(path)
	if errors.Is(err, os.ErrClosed) {
		err = ErrNoProcess // it has ended, and candid has let go of it
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not used: %w", path, err)
	}
	return f, nil
}

func (p *Process) openOwn(path string) (*os.File, error) {
	if a := p.sys.access; a != nil && a.silent.Load() {
		return nil, fmt.Errorf("a file system that the process uses does not answer: %w", ErrUnsupported)
	}
	root, err := p.openat(p.at("root"), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return safeopen.OwnedAt(root, path, p.uidNow())
}

// uidNow returns the user that the process runs as now: servers give up root after they started.
func (p *Process) uidNow() int {
	var buf [4096]byte
	if raw, err := p.readSmall("status", buf[:]); err == nil {
		return parseStatus(raw).UID
	}
	return p.uid
}
