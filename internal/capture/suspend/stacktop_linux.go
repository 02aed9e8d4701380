package suspend

import (
	"io/fs"
	"syscall"

	"github.com/candid-profiler/candid/internal/target"
)

const (
	// largestStack is the most that is copied of a stack, bytes.
	largestStack = 512 << 10
	// unknownStack is the most where the stack's top is not known.
	unknownStack = 64 << 10
	// near is how far from its thread's descriptor a stack pointer can be on the
	// stack that belongs to it, bytes.
	near = 64 << 20
)

// stackSpan is where a stack is known to lie.
type stackSpan struct{ low, high uint64 }

func (s stackSpan) top(sp uint64) uint64 {
	if sp >= s.low && sp < s.high {
		return s.high
	}
	return 0
}

// stackFinder looks stacks up in a process's mappings, for threads whose
// descriptor is elsewhere. It is used while no thread stands still, so that the
// copy of a stack that was not known yet is cut, and the next one is not.
type stackFinder struct {
	proc   *target.Process
	failed bool
	asked  int64 // ns
}

// findEvery is how often the mappings of a process are read at most, ns.
const findEvery = 100e6

// find is the mapping that holds a stack pointer.
func (f *stackFinder) find(pid int, sp uint64, now int64) stackSpan {
	if f.failed || f.asked != 0 && now-f.asked < findEvery {
		return stackSpan{}
	}
	f.asked = now
	if f.proc == nil {
		p, err := target.Open(pid)
		if err != nil {
			f.failed = true
			return stackSpan{}
		}
		f.proc = p
	}
	maps, err := f.proc.Mappings()
	if err != nil {
		return stackSpan{}
	}
	for _, m := range maps {
		if sp >= m.Start && sp < m.End {
			return stackSpan{m.Start, m.End}
		}
	}
	return stackSpan{}
}

func (f *stackFinder) close() {
	if f.proc != nil {
		_ = f.proc.Close()
	}
	f.proc = nil
}

// firstStack is where the stack ends that exec made for a process, 0 if that may not
// be known.
func (e *Engine) firstStack(p *process) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return p.firstStack()
}

func (p *process) firstStack() uint64 {
	if p.startStack == 0 {
		return 0
	}
	// The argument count is there, and the first argument above it.
	return p.startStack + 16
}

func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
