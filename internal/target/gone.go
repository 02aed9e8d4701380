package target

import (
	"fmt"
	"os"
	"sync"
)

// Ended gives a process that is no more, as far as it was heard of: it has the
// mappings of its Space, and the files behind them where they are still the same.
// Its memory cannot be read, except what Memory.FallBack gives.
func Ended(pid int, comm string, space *Space) *Process {
	p := &Process{PID: pid, comm: comm, uid: -1, space: space, unseen: true}
	if space.Program != "" {
		p.exe, p.cmdline = space.Program, []string{space.Program}
	}
	p.sys.holdNothing()
	p.mem = newMemory(nowhere{})
	return p
}

// Recorded gives a process of a recording that somebody made, perhaps on another
// machine: it has the mappings of its Space, and open opens the files behind them.
// Nothing of it is looked for on this machine otherwise.
func Recorded(pid int, comm string, space *Space, open func(Mapping) (*os.File, error)) *Process {
	p := Ended(pid, comm, space)
	p.opener = open
	return p
}

// Remember gives the process a Space to go by when it has ended. It stays the
// caller's.
func (p *Process) Remember(s *Space) { p.space = s }

// Space is what Remember or Ended gave, nil for nothing.
func (p *Process) Space() *Space { return p.space }

// remembered gives the mappings that are known without the process.
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

// OwnVDSO is the image of the vdso in candid itself. The kernel has one for all
// 64-bit programs, so it is the target's too. The slice is shared: it must not be
// changed.
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
