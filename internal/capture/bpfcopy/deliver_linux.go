package bpfcopy

import (
	"github.com/candid-profiler/candid/internal/capture"
)

// item is a record of a batch, or a notice from another source.
type item struct {
	time   uint64
	weight uint64 // of a clock sample
	data   []byte
	note   int // index into the batch's maps if data is nil
}

// maxExeced bounds how many processes are remembered whose end may have been missed.
const maxExeced = 1 << 16

// expect makes a new process a target before its mappings, which are in other rings, are searched.
func (e *Engine) expect(b []byte) {
	var n capture.ProcessEvent
	if b[0] != kindNotice || b[4] != noticeFork || e.opts.All {
		return
	}
	if _, err := decodeNotice(b, &n); err == nil && n.Kind == capture.Fork && n.PID != n.Parent {
		e.targets.Add(n.PID)
	}
}

func (e *Engine) deliver(it *item, sink capture.Sink) {
	switch b := it.data; b[0] {
	case kindSample:
		if err := decodeSample(b, &e.snap); err != nil {
			e.malformed.Add(1)
			return
		}
		e.bytes.Add(uint64(len(e.snap.Stack)))
		e.hand(it, sink)
	case kindNotice:
		var n capture.ProcessEvent
		last, err := decodeNotice(b, &n)
		if err != nil {
			e.malformed.Add(1)
			return
		}
		if n.Kind == capture.Fork && n.PID != n.Parent && !e.opts.All {
			e.targets.Add(n.PID)
		}
		if last {
			e.targets.Forget(n.PID)
		}
		if n.Last = last; last || n.Kind == capture.Exec {
			// The programs report an Exec when the program is in place, the other rings before it
			// is mapped.
			told := e.execed[n.PID]
			delete(e.execed, n.PID)
			if n.Kind == capture.Exec {
				if e.begins(&n, told); told {
					return
				}
			} else {
				delete(e.begun, n.PID)
				e.unknow(n.PID)
			}
		} else if n.Kind == capture.Fork && n.PID != n.Parent {
			e.begins(&n, false)
		}
		sink.Notice(n)
	default:
		e.malformed.Add(1)
	}
}

// hand delivers a sample for every event that it belongs to.
func (e *Engine) hand(it *item, sink capture.Sink) {
	b, weight := it.data, it.weight
	switch s := &e.snap; s.Event {
	case eventTick:
		if e.timers == nil {
			return
		}
		ran := word(b[offAsleep:])
		for _, i := range e.events.ticks {
			if int(i) == e.events.wall && ran > 0 {
				e.give(sink, i, ran, capture.Running)
				continue
			}
			e.give(sink, i, weight, capture.Running)
		}
	case eventAway:
		state := max(s.State, capture.Sleeping)
		off, asleep, ready := s.Weight, word(b[offAsleep:]), word(b[offReady:])
		if len(e.told) > 0 {
			before, over := e.told.rest(s.TID, s.Time, max(off, asleep), ready, e.started)
			if over {
				return
			}
			off -= min(off, before)
			asleep -= min(asleep, before)
			if before > 0 {
				s.Flags |= capture.Continued
			}
		}
		back := s.Time
		if ready > uint64(e.opts.Period) {
			// The sleep ended when the wait for a CPU began. A wait of one period stands for many
			// short ones.
			s.Time -= min(s.Time, ready)
		}
		e.giveAway(sink, e.events.off, off, state)
		e.giveAway(sink, e.events.wall, asleep, state)
		s.Flags &^= capture.Continued
		s.Time = back
		e.giveAway(sink, e.events.wall, ready, capture.Runnable)
	default:
		if int(s.Event) < len(e.opts.Events) {
			e.give(sink, s.Event, s.Weight, s.State)
		}
	}
}

func (e *Engine) give(sink capture.Sink, event uint16, weight uint64, state capture.State) {
	e.snap.Event, e.snap.Weight, e.snap.State = event, weight, state
	e.samples.Add(1)
	sink.Sample(&e.snap)
}

// giveAway delivers a sample of time off the CPU for an event, if there is such an event and the
// weight is not 0.
func (e *Engine) giveAway(sink capture.Sink, event int, weight uint64, state capture.State) {
	if event >= 0 && weight > 0 {
		e.give(sink, uint16(event), weight, state)
	}
}
