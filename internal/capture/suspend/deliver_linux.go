package suspend

import (
	"cmp"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
)

// item is a sample or a notice of a batch.
type item struct {
	time   int64
	sample *sample
	arena  []byte
	notice int // index into Engine.notices if sample is nil
}

// drain hands over what the sampling threads have copied, in time order. The buffer of a sampling
// thread that is at work is left for the next time, unless all is set.
func (e *Engine) drain(sink capture.Sink, all bool) {
	parted := e.takeParted() // before their samples
	whole := true
	e.batch = e.batch[:0]
	held := make([]*buffer, 0, len(e.list)+1)
	for _, b := range e.buffers() {
		if all {
			b.mu.Lock()
		} else if !b.mu.TryLock() {
			whole = false
			continue
		}
		if len(b.samples) == 0 {
			b.mu.Unlock()
			continue
		}
		ready := b.take()
		b.mu.Unlock()
		held = append(held, b)
		for i := range ready {
			e.batch = append(e.batch, item{time: ready[i].time, sample: &ready[i], arena: b.spare})
		}
	}
	for i := range e.notices {
		e.batch = append(e.batch, item{time: int64(e.notices[i].Time), notice: i})
	}
	if len(e.batch) == 0 && len(parted) == 0 && len(e.closing) == 0 {
		if time.Since(e.batched) >= capture.IdleBatch {
			e.batchEnd(sink)
		}
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
	if whole {
		e.tellParted(sink, parted)
		e.tellGone(sink, false)
	} else {
		for _, th := range parted {
			e.part(th)
		}
	}
	for _, b := range held {
		clear(b.ready)
	}
	e.batchEnd(sink)
}

func (e *Engine) batchEnd(sink capture.Sink) {
	sink.BatchEnd()
	e.batched = time.Now()
}

// buffers returns the buffers that samples come from.
func (e *Engine) buffers() []*buffer {
	list := make([]*buffer, 0, len(e.list)+1)
	for _, l := range e.list {
		list = append(list, &l.buffer)
	}
	if e.scanner != nil {
		list = append(list, &e.scanner.buffer)
	}
	return list
}

func (e *Engine) deliver(sink capture.Sink, s *sample, arena []byte) {
	th := s.th
	out := &e.snap
	*out = capture.Snapshot{
		Time: uint64(s.time), Weight: s.weight, PID: uint32(th.proc.pid), TID: uint32(th.tid), CPU: uint32(s.cpu),
		State: s.state, Syscall: s.call, Sleep: s.sleep, StackAddr: s.at, StackTop: s.top, Flags: s.flags,
	}
	if s.sleeper != nil {
		out.Event = uint16(e.wall)
	} else {
		th.shown = capture.Ran | out.Time
		e.given.samples++
		e.given.ns += s.weight
		out.Sleep = th.shown
	}
	if s.again {
		e.repeat(sink, s)
		return
	}
	s.regs.decode(&out.Regs)
	if s.asleep {
		out.Regs.Known = placeKnown
	}
	out.Stack, out.Regions = arena[s.off:s.off+s.len], s.regions
	if s.top == 0 && s.len > 0 {
		e.findTop(th, out, s.time)
	}
	e.bytes.Add(uint64(len(out.Stack)))
	if s.sleeper != nil {
		e.give(sink)
	} else {
		for _, i := range e.ticks {
			out.Event = i
			e.give(sink)
		}
	}
	out.Event, out.Sleep = uint16(e.wall), 0
	out.Flags &^= capture.Continued
	if s.ready > 0 {
		out.State, out.Weight = capture.Runnable, s.ready
		e.give(sink)
	}
	if s.stood > 0 {
		out.State, out.Weight, out.Syscall = capture.Sleeping, s.stood, 0
		e.give(sink)
	}
}

func (e *Engine) give(sink capture.Sink) {
	e.samples.Add(1)
	sink.Sample(&e.snap)
}

// repeat hands over more time of a sleep that the sink knows. The stack is copied again if the sink
// wants it.
func (e *Engine) repeat(sink capture.Sink, s *sample) {
	out := &e.snap
	taken, want := false, true
	r, ok := sink.(capture.SleepSink)
	if ok {
		taken, want = r.Again(out)
	}
	if want {
		s.sleeper.wanted.Store(true)
	}
	if !taken {
		e.refused = true
		s.sleeper.back.Add(int64(s.weight))
		s.th.giveWaited(s.ready)
		return
	}
	e.samples.Add(1)
	if s.ready > 0 {
		out.State, out.Weight = capture.Runnable, s.ready
		if taken, _ = r.Again(out); taken {
			e.samples.Add(1)
		} else {
			s.th.giveWaited(s.ready)
		}
	}
}

// findTop looks up the end of a stack that the thread register does not show, and cuts the copy
// there.
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
