//go:build !linux && !windows

package launch

import (
	"fmt"
	"os"

	"github.com/candid-profiler/candid/internal/capture"
)

// Child is a command that was started.
type Child struct {
	PID int
}

// Start fails: starting a stopped command is implemented for Linux only.
func Start(argv []string, _ []string) (*Child, error) {
	return nil, fmt.Errorf("start %v: %w: launching is built for Linux; start it yourself and use -p", argv, capture.ErrUnsupported)
}

// StartApart fails, as Start does.
func StartApart(argv []string, env []string, _ *os.File) (*Child, error) { return Start(argv, env) }

// Release fails, as Start does.
func (c *Child) Release() (Begin, error) { return Begin{}, capture.ErrUnsupported }

// Processes says that they are not counted.
func (c *Child) Processes() (n uint64, ok bool) { return 0, false }

// Wait fails, as Start does.
func (c *Child) Wait() (code int, err error) { return CodeFailed, capture.ErrUnsupported }

// Signal fails, as Start does.
func (c *Child) Signal(os.Signal) error { return capture.ErrUnsupported }

// Kill does nothing: nothing was started.
func (c *Child) Kill() {}
