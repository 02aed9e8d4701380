//go:build unix

package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const lockName = "lock"

// lock is held by the process that writes to a store. It ends with the process, also by kill -9.
type lock struct{ f *os.File }

func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o640)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, lockedBy(f)
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	return &lock{f}, nil
}

// lockedBy returns ErrLocked with the number of the process that wrote it to the file.
func lockedBy(f *os.File) error {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	if pid := strings.TrimSpace(string(b[:n])); pid != "" && strings.Trim(pid, "0123456789") == "" {
		return fmt.Errorf("%w: process %s; stop it, or give each agent a store of its own", ErrLocked, pid)
	}
	return fmt.Errorf("%w; stop it, or give each agent a store of its own", ErrLocked)
}

func (l *lock) release() { _ = l.f.Close() }

// freeSpace returns how many bytes the disk of a directory has for candid, and in all.
func freeSpace(dir string) (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}

func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
