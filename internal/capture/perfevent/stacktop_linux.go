package perfevent

import "github.com/candid-profiler/candid/internal/target"

// stackTops remembers where the threads' stacks are mapped, so that a copy that
// the kernel made too long can be cut there.
type stackTops struct {
	procs map[uint32]*target.Process // nil: it could not be looked at
	spans map[uint32]stackSpan       // by thread
}

type stackSpan struct{ low, high uint64 }

// maxSpans bounds what is remembered.
const maxSpans = 1 << 16

func newStackTops() *stackTops {
	return &stackTops{procs: map[uint32]*target.Process{}, spans: map[uint32]stackSpan{}}
}

// top is the end of the mapping that holds the thread's stack pointer, 0 if
// there is none to be found.
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

// forgetThread drops what is known of a thread that ended.
func (t *stackTops) forgetThread(tid uint32) { delete(t.spans, tid) }

// forgetProcess drops what is known of a process that ended or became another
// program.
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
