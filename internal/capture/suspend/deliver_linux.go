package suspend

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/capture"
)

// item is a sample or a notice of a batch.
type item struct {
	time   int64
	sample *sample
	arena  []byte
	notice int // index into Engine.notices if sample is nil
}

// drain hands over what the sampling threads have copied, in order of time. One
// that is at work is left for the next time, unless it has to be all.
func (e *Engine) drain(sink capture.Sink, all bool) {
	e.batch = e.batch[:0]
	held := make([]*worker, 0, len(e.list))
	for _, w := range e.list {
		if all {
			w.mu.Lock()
		} else if !w.mu.TryLock() {
			continue
		}
		if len(w.samples) == 0 {
			w.mu.Unlock()
			continue
		}
		// The samples are taken away under the lock; the stacks stay where they
		// are, in the arena that the sampling thread now leaves.
		w.ready = append(w.ready[:0], w.samples...)
		w.arena, w.spare = w.spare, w.arena
		w.samples, w.used = w.samples[:0], 0
		w.mu.Unlock()
		held = append(held, w)
		for i := range w.ready {
			e.batch = append(e.batch, item{time: w.ready[i].time, sample: &w.ready[i], arena: w.spare})
		}
	}
	for i := range e.notices {
		e.batch = append(e.batch, item{time: int64(e.notices[i].Time), notice: i})
	}
	if len(e.batch) == 0 {
		return
	}
	slices.SortStableFunc(e.batch, func(a, b item) int { return cmp.Compare(a.time, b.time) })
	for i := range e.batch {
		if it := &e.batch[i]; it.sample != nil {
			e.deliver(sink, it.sample, it.arena)
		} else {
			sink.Notice(e.notices[it.notice])
		}
	}
	e.notices = e.notices[:0]
	for _, w := range held {
		clear(w.ready)
	}
	sink.BatchEnd()
}

func (e *Engine) deliver(sink capture.Sink, s *sample, arena []byte) {
	th := s.th
	out := &e.snap
	*out = capture.Snapshot{
		Time: uint64(s.time), Weight: s.weight, PID: uint32(th.proc.pid), TID: uint32(th.tid), CPU: uint32(s.cpu),
		StackAddr: s.at, StackTop: s.top, Flags: s.flags,
	}
	s.regs.decode(&out.Regs)
	if s.asleep {
		out.Regs.Known = placeKnown
	}
	out.Stack = arena[s.off : s.off+s.len]
	if s.top == 0 && s.len > 0 {
		e.findTop(th, out, s.time)
	}
	e.samples.Add(1)
	e.bytes.Add(uint64(len(out.Stack)))
	sink.Sample(out)
}

// findTop looks up where a stack ends whose thread register does not tell, and
// cuts the copy there.
func (e *Engine) findTop(th *thread, s *capture.Snapshot, now int64) {
	span := th.proc.stacks.find(th.proc.pid, s.Regs.SP(), now)
	if span.high == 0 {
		return
	}
	e.mu.Lock()
	th.stack = span
	e.mu.Unlock()
	s.StackTop = span.high
	if end := s.StackAddr + uint64(len(s.Stack)); end >= span.high {
		s.Stack = s.Stack[:span.high-s.StackAddr]
		s.Flags &^= capture.StackCut
	}
}
