package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

const lockName = "lock"

// lock is held by the process that writes to a store. It ends with the process.
type lock struct{ f *os.File }

func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if err != nil {
		_ = f.Close()
		if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
			return nil, fmt.Errorf("%w; stop it, or give each agent a store of its own", ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &lock{f}, nil
}

func (l *lock) release() { _ = l.f.Close() }

// freeSpace returns how many bytes the disk of a directory has for candid, and in all.
func freeSpace(dir string) (free, total uint64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	err = windows.GetDiskFreeSpaceEx(name, &free, &total, nil)
	return free, total, err
}

func isFull(err error) bool { return errors.Is(err, windows.ERROR_DISK_FULL) }
