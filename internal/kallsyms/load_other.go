//go:build !linux

package kallsyms

import (
	"fmt"
	"runtime"
)

// Load returns an error that wraps ErrUnsupported.
func Load() (*Symbols, error) {
	return nil, fmt.Errorf("kernel symbols: only Linux publishes them, this is %s: %w", runtime.GOOS, ErrUnsupported)
}
