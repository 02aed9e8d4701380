package perfevent

import "github.com/candid-profiler/candid/internal/target"

// stackTops remembers where the threads' stacks are mapped, so that a copy that the kernel made too
// long can be cut at the stack's end.
type stackTops struct {
	procs map[uint32]*target.Process // nil if the process could not be opened
	spans map[uint32]stackSpan       // by TID
}

type stackSpan struct{ low, high uint64 }

// maxSpans bounds how many stacks are remembered.
const maxSpans = 1 << 16

func newStackTops() *stackTops {
	return &stackTops{procs: map[uint32]*target.Process{}, spans: map[uint32]stackSpan{}}
}

// top returns the end of the mapping that holds the thread's stack pointer, 0 if none can be found.
func (t *stackTops) top(pid, tid uint32, sp uint64) uint64 {
	if s, ok := t.spans[tid]; ok && sp >= s.low && sp < s.high {
		return s.high
	}
	p, ok := t.procs[pid]
	if !ok {
		p, _ = target.Open(int(pid))
		t.procs[pid] = p
	}
	if p == nil {
		return 0
	}
	maps, err := p.Mappings()
	if err != nil {
		return 0
	}
	for _, m := range maps {
		if m.Contains(sp) {
			if len(t.spans) >= maxSpans {
				clear(t.spans)
			}
			t.spans[tid] = stackSpan{m.Start, m.End}
			return m.End
		}
	}
	return 0
}

// forgetThread forgets a thread that has ended.
func (t *stackTops) forgetThread(tid uint32) { delete(t.spans, tid) }

// forgetProcess forgets a process that has ended or executed another program.
func (t *stackTops) forgetProcess(pid uint32) {
	if p := t.procs[pid]; p != nil {
		_ = p.Close()
	}
	delete(t.procs, pid)
	clear(t.spans)
}

func (t *stackTops) close() {
	for _, p := range t.procs {
		if p != nil {
			_ = p.Close()
		}
	}
	clear(t.procs)
}
