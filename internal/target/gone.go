package target

import (
	"fmt"
	"os"
	"sync"
)

// Ended returns a process that has ended, with what was recorded of it: it has the mappings of its
// Space, and the files behind them if they are unchanged. Its memory cannot be read, except for
// what Memory.FallBack supplies.
func Ended(pid int, comm string, space *Space) *Process {
	p := &Process{PID: pid, comm: comm, uid: -1, space: space, unseen: true}
	if space.Program != "" {
		p.exe, p.cmdline = space.Program, []string{space.Program}
	}
	p.sys.holdNothing()
	p.mem = newMemory(nowhere{})
	return p
}

// Recorded returns a process of a recording, which may be from another machine: it has the mappings
// of its Space, and open opens the files behind them. Nothing else of it is looked up on this
// machine.
func Recorded(pid int, comm string, space *Space, open func(Mapping) (File, error)) *Process {
	p := Ended(pid, comm, space)
	p.saved = &Saved{Open: open}
	return p
}

// Remember sets the Space from which the process's mappings are taken when it has ended. The Space
// stays the caller's.
func (p *Process) Remember(s *Space) { p.space = s }

// Space returns what was passed to Remember or Ended, nil if nothing was.
func (p *Process) Space() *Space { return p.space }

// remembered returns the mappings that are known without the process.
func (p *Process) remembered() ([]Mapping, bool) {
	if p.space == nil || !p.space.Whole && !p.unseen {
		return nil, false
	}
	maps := p.space.Mappings()
	return maps, len(maps) > 0
}

var own struct {
	once  sync.Once
	image []byte
	err   error
}

// OwnVDSO returns the image of the vdso in candid itself. The kernel has one for all 64-bit
// programs, so it is the target's too. The slice is shared and must not be changed.
func OwnVDSO() ([]byte, error) {
	own.once.Do(func() {
		p, err := Open(os.Getpid())
		if err != nil {
			own.err = fmt.Errorf("read our own vdso: %w", err)
			return
		}
		defer p.Close()
		own.image, _, own.err = p.VDSO()
	})
	return own.image, own.err
}
