package suspend

import (
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/target"
)

// mostFollowed is how many bytes are copied besides a stack at most.
const mostFollowed = 256 << 10

var (
	_ capture.Engine        = (*Engine)(nil)
	_ capture.Follower      = (*Engine)(nil)
	_ capture.CPUAccounting = (*Engine)(nil)
)

// Follow sets where the stacks of a target go on. It implements capture.Follower.
func (e *Engine) Follow(pid int, how *capture.Follow) error {
	if how != nil {
		if err := how.Check(); err != nil {
			return fmt.Errorf("follow the stacks of process %d: %w", pid, err)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.procs[pid]
	if p == nil {
		return fmt.Errorf("follow the stacks of process %d: it is not sampled: %w", pid, target.ErrNoProcess)
	}
	p.follow.Store(how)
	return nil
}

// Follow sets where the stacks of the process go on; nil: nowhere else.
func (s *Stopper) Follow(how *capture.Follow) error {
	if how == nil {
		return errors.New("follow stacks: there is no description")
	}
	if err := how.Check(); err != nil {
		return fmt.Errorf("follow stacks: %w", err)
	}
	s.proc.follow.Store(how)
	return nil
}

// copyRegions copies the memory in which the thread's stack goes on, while the thread is stopped.
// The bytes belong to the sample.
func (w *worker) copyRegions(p *pick, s *sample) {
	how := p.th.proc.follow.Load()
	if how == nil || s.len == 0 {
		return
	}
	var regs cpu.Registers
	s.regs.decode(&regs)
	known := regs.Known
	if p.asleep {
		known = placeKnown
	}
	if base := s.regs.threadBase(); base != 0 {
		p.th.base = base
	}
	f := capture.Followed{
		Load: func(b []byte, addr uint64) bool {
			n, _ := p.th.proc.memory.copy(p.tid, b, addr, 0)
			return n == len(b)
		},
		Register: func(n uint32) (uint64, bool) {
			return regs.R[n%uint32(len(regs.R))], n < uint32(len(regs.R)) && known&(1<<n) != 0
		},
		Thread: p.th.base, SP: s.regs.sp(), Top: s.top, Most: mostFollowed,
	}
	f.Go(how)
	s.regions = f.Regions
}
