//go:build !linux && !windows

package dump

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
)

// Dumper reads the threads of processes on systems that support it.
type Dumper struct{}

// New fails: there is no way to read the threads of others.
func New(Options) (*Dumper, error) {
	return nil, fmt.Errorf("look at the threads of a process: %w: on this system candid shows no single dump; record by wall time shows where threads wait", capture.ErrUnsupported)
}

// Take is never reached.
func (*Dumper) Take() (*Dump, error) { return nil, capture.ErrUnsupported }

// Close does nothing.
func (*Dumper) Close() error { return nil }
