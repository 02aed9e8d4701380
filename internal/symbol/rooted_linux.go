package symbol

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// openIn opens a file below dir, the root of the target's file system. The target controls what
// lies there: links are followed within dir only, so that none leads to a file of ours, and a pipe
// does not block us.
func openIn(dir, path string) (*os.File, error) {
	d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(d)
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(d, strings.TrimPrefix(path, "/"), &how)
	if err == unix.ENOSYS || err == unix.EPERM && dir == "/" { // before Linux 5.6, or a sandbox without it
		if dir == "/" {
			fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		} else {
			return openBelow(dir, path)
		}
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openBelow is openIn without the kernel's help: links that lead out of dir, including absolute
// ones, are refused.
func openBelow(dir, path string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(strings.TrimPrefix(path, "/"), os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// ownVDSO reads the vdso that the kernel mapped into this process. The kernel has one image for all
// processes of an architecture, so it also names the target's.
func ownVDSO() (*File, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		a, rest, _ := strings.Cut(line, "-")
		b, _, _ := strings.Cut(rest, " ")
		lo, err1 := strconv.ParseUint(a, 16, 64)
		hi, err2 := strconv.ParseUint(b, 16, 64)
		if err1 != nil || err2 != nil || hi <= lo || hi-lo > 1<<20 {
			break
		}
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil, err
		}
		defer mem.Close()
		buf := make([]byte, hi-lo)
		if _, err := mem.ReadAt(buf, int64(lo)); err != nil {
			return nil, fmt.Errorf("read our own vdso: %w", err)
		}
		return OpenReader(bytes.NewReader(buf), int64(len(buf)), Options{NoLines: true})
	}
	return nil, fmt.Errorf("this process has no vdso")
}
