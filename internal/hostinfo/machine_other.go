//go:build !linux

package hostinfo

import (
	"fmt"
	"runtime"
)

var errSystem = fmt.Errorf("read what the machine does on %s: only Linux's /proc is read so far: %w", runtime.GOOS, ErrUnsupported)

// Look returns what the Go runtime knows.
func Look() (Info, error) {
	return Info{OS: runtime.GOOS, CPU: runtime.GOARCH, Threads: runtime.NumCPU()}, nil
}

// Now returns an error that wraps ErrUnsupported.
func Now() (Load, error) { return Load{}, errSystem }

// Memory returns an error that wraps ErrUnsupported.
func Memory(int) (resident, peak uint64, err error) { return 0, 0, errSystem }

// NetworkSpace returns an error that wraps ErrUnsupported.
func NetworkSpace(int) (string, error) { return "", errSystem }

// Network returns an error that wraps ErrUnsupported.
func Network(int) ([]Interface, error) { return nil, errSystem }
