//go:build !linux

package suspend

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
)

// Open fails: this engine stops threads with Linux's ptrace.
func Open(capture.Options, string) (capture.Engine, error) {
	return nil, fmt.Errorf("sample by suspending threads: %w: candid suspends threads in Linux only so far", capture.ErrUnsupported)
}
