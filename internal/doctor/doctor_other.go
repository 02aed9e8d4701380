//go:build !linux && !windows

package doctor

import (
	"fmt"
	"runtime"
)

// Examine fails: candid records on Linux.
func Examine(Options) (*Report, error) {
	return nil, fmt.Errorf("examine this machine: %w: candid records on Linux only, this is %s", ErrUnsupported, runtime.GOOS)
}
