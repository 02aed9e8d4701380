package suspend

import (
	"io/fs"
	"syscall"

	"github.com/candid-profiler/candid/internal/target"
)

const (
	// largestStack is the most bytes of a stack that are copied.
	largestStack = 512 << 10
	// unknownStack is the most bytes if the stack's top is not known.
	unknownStack = 64 << 10
	// near is how many bytes from its thread's descriptor a stack pointer can be on the stack that
	// belongs to it.
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

// stackFinder looks up stacks in a process's mappings, for threads whose descriptor is elsewhere.
// It is used while no thread is stopped, so that the copy of a stack that was not known yet is cut,
// and the next one is not.
type stackFinder struct {
	proc   *target.Process
	failed bool
	asked  int64 // ns, when the mappings were last read
}

// findEvery is the least time between two readings of a process's mappings, in ns.
const findEvery = 100e6

// find returns the mapping that holds a stack pointer.
func (f *stackFinder) find(pid int, sp uint64, now int64) stackSpan {
	if f.failed || f.asked != 0 && now-f.asked < findEvery {
		return stackSpan{}
	}
	f.asked = now
	p := f.open(pid)
	if p == nil {
		return stackSpan{}
	}
	maps, err := p.Mappings()
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

// open opens the process at the first call; nil if it cannot be opened.
func (f *stackFinder) open(pid int) *target.Process {
	if f.proc == nil && !f.failed {
		p, err := target.Open(pid)
		if err != nil {
			f.failed = true
			return nil
		}
		f.proc = p
	}
	return f.proc
}

// lookAtMemory updates what of the process's memory is not read while a thread is stopped.
func (p *process) lookAtMemory(now int64) { p.memory.look(p.stacks.open(p.pid), now) }

func (f *stackFinder) close() {
	if f.proc != nil {
		_ = f.proc.Close()
	}
	f.proc = nil
}

// firstStack returns the end of the stack that exec made for a process, 0 if candid may not know
// it.
func (e *Engine) firstStack(p *process) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return p.firstStack()
}

func (p *process) firstStack() uint64 {
	if p.startStack == 0 {
		return 0
	}
	// startStack is the address of the argument count, and the first argument is above it.
	return p.startStack + 16
}

func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
