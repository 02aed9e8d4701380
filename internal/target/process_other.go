//go:build !linux && !windows

package target

import (
	"fmt"
	"os"
	"runtime"
)

// processSystem is empty: nothing is held here yet.
type processSystem struct{}

func (*processSystem) holdNothing() {}

// errSystem says that this system's processes cannot be read yet.
func errSystem(what string) error {
	return fmt.Errorf("%s: only Linux's /proc is read so far, this is %s: %w", what, runtime.GOOS, ErrUnsupported)
}

// Open returns an error that wraps ErrUnsupported.
func Open(pid int) (*Process, error) {
	return nil, &AccessError{PID: pid, Reason: ReasonSystem, UID: -1}
}

// Close does nothing.
func (p *Process) Close() error { return nil }

// Alive returns false.
func (p *Process) Alive() bool { return false }

// Replaced returns false.
func (p *Process) Replaced() bool { return false }

// Mappings returns the Space's mappings, else an error that wraps ErrUnsupported.
func (p *Process) Mappings() ([]Mapping, error) {
	if known, ok := p.remembered(); ok {
		return known, nil
	}
	return nil, errSystem("list mappings")
}

// Threads returns an error that wraps ErrUnsupported.
func (p *Process) Threads() ([]Thread, error) { return nil, errSystem("list threads") }

// Thread returns an error that wraps ErrUnsupported.
func (p *Process) Thread(int) (Thread, error) { return Thread{}, errSystem("read a thread") }

// ThreadName returns an error that wraps ErrUnsupported.
func (p *Process) ThreadName(int) (string, error) { return "", errSystem("read a thread") }

// OpenFile opens a file of a recording; otherwise it returns an error that wraps ErrUnsupported.
func (p *Process) OpenFile(m Mapping) (File, error) {
	if p.saved != nil {
		return p.saved.Open(m)
	}
	return nil, errSystem("open a mapped file")
}

// OpenInRoot returns an error that wraps ErrUnsupported.
func (p *Process) OpenInRoot(string) (*os.File, error) { return nil, errSystem("open a file") }

// OpenPerfMap returns an error that wraps ErrUnsupported.
func (p *Process) OpenPerfMap() (*os.File, error) { return nil, errSystem("open a file") }

// CPUTimes returns an error that wraps ErrUnsupported.
func CPUTimes(*Process) (map[int]uint64, error) { return nil, errSystem("read CPU times") }

// CPUTime returns an error that wraps ErrUnsupported.
func CPUTime(*Process) (uint64, error) { return 0, errSystem("read CPU times") }

// CPUTicks returns an error that wraps ErrUnsupported.
func CPUTicks(*Process, int) (user, system uint64, err error) {
	return 0, 0, errSystem("read CPU times")
}

// List returns an error that wraps ErrUnsupported.
func List() ([]Summary, error) { return nil, errSystem("list processes") }
