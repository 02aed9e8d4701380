package perfevent

import (
	"cmp"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
)

// item is a record of a batch.
type item struct {
	time uint64
	ring int
	span Span
}

// drain hands over what is waiting, oldest first.
func (e *Engine) drain(sink capture.Sink) {
	e.mu.Lock()
	rings := e.rings
	e.mu.Unlock()
	e.batch = e.batch[:0]
	// Records that arrive while the rings are read wait for the next pass, so that no effect is
	// handled before its cause.
	until := Now()
	for i, r := range rings {
		r.Begin()
		for s, ok := r.Next(); ok; s, ok = r.Next() {
			at := r.Time(s)
			if at > until {
				r.Back(s)
				break
			}
			e.batch = append(e.batch, item{time: at, ring: i, span: s})
		}
	}
	if len(e.batch) == 0 {
		if time.Since(e.batched) >= capture.IdleBatch {
			e.batchEnd(sink)
		}
		return
	}
	slices.SortStableFunc(e.batch, func(a, b item) int { return cmp.Compare(a.time, b.time) })
	for i := range e.batch {
		it := &e.batch[i]
		if err := e.attr.Layout.Parse(rings[it.ring].Bytes(it.span, &e.scratch), &e.rec); err != nil {
			e.lost.Add(1)
			continue
		}
		e.deliver(sink)
	}
	for _, r := range rings {
		r.Release()
	}
	e.batchEnd(sink)
}

func (e *Engine) batchEnd(sink capture.Sink) {
	sink.BatchEnd()
	e.batched = time.Now()
}

// deliver hands over the parsed record if it belongs to a target.
func (e *Engine) deliver(sink capture.Sink) {
	r := &e.rec
	n := capture.ProcessEvent{Time: r.Time, PID: r.PID, TID: r.TID}
	switch r.Type {
	case RecordLost, RecordLostSample:
		e.lost.Add(r.Lost)
		sink.Notice(capture.ProcessEvent{Kind: capture.Mmap, Time: r.Time})
		return
	case RecordThrottle:
		e.throttled.Add(1)
		return
	case RecordSample:
		if e.targets.Has(r.PID) {
			e.sample(sink)
		}
		return
	case RecordFork:
		if !e.targets.Has(r.Parent) || r.PID != r.Parent && !e.opts.Children && !e.opts.All {
			return
		}
		if !e.opts.All {
			e.targets.Add(r.PID)
		}
		n.Kind, n.Parent = capture.Fork, r.Parent
		sink.Notice(n)
		return
	}
	if r.PID == 0 || !e.targets.Has(r.PID) {
		return // 0 stands for processes that are not visible in candid's pid namespace
	}
	switch r.Type {
	case RecordExit:
		n.Kind = capture.Exit
		e.tops.forgetThread(r.TID)
	case RecordComm:
		n.Kind, n.Comm = capture.Comm, string(r.Comm)
		if r.Exec {
			n.Kind = capture.Exec
			e.tops.forgetProcess(r.PID)
		}
	case RecordMmap, RecordMmap2:
		n.Kind, n.Mapping = capture.Mmap, e.paths.mapping(r)
	default:
		return
	}
	sink.Notice(n)
}

// sample converts the record to a Snapshot.
func (e *Engine) sample(sink capture.Sink) {
	r, s := &e.rec, &e.snap
	*s = capture.Snapshot{Time: r.Time, Weight: r.Period, PID: r.PID, TID: r.TID, CPU: r.CPU, Kernel: r.Kernel}
	if e.timers != nil && e.attr.Kind == capture.CPUTime {
		s.Weight = e.timers.Weight(r.CPU, r.Time)
	}
	if r.InKernel {
		s.Flags |= capture.InKernel
	}
	if r.ABI == 0 {
		s.Flags |= capture.NoUser
	} else {
		registers(&r.Regs, &s.Regs)
		e.stack()
	}
	e.samples.Add(1)
	e.bytes.Add(uint64(len(s.Stack)))
	sink.Sample(s)
}

// stack cuts the copy to the thread's own stack.
func (e *Engine) stack() {
	r, s := &e.rec, &e.snap
	sp := s.Regs.SP()
	s.StackAddr, s.Stack = sp, r.Stack
	if len(r.Stack) == 0 {
		s.Flags |= capture.StackUnread
		return
	}
	s.StackTop = e.tops.top(r.PID, r.TID, sp)
	switch {
	case s.StackTop == 0:
		s.Flags |= capture.StackCut
	case s.StackTop-sp <= uint64(len(s.Stack)):
		s.Stack = s.Stack[:s.StackTop-sp]
	default:
		s.Flags |= capture.StackCut
	}
}
