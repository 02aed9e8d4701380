package jfr

import (
	"bytes"
	"math"

	"github.com/candid-profiler/candid/internal/profile"
)

// How waits are written for other readers.
//
// A sample of wall time contains a number: how many samples, taken at the event's interval, it
// stands for. Pyroscope's conversion also multiplies every ExecutionSample by that number, until
// the next sample of wall time. So in a file that has both, an ExecutionSample may only follow
// samples of wall time the last of which is written as one interval. Readers do not need the order
// of time within a flush: samples written with another number are held back until one comes that is
// written as one anyway, and each flush ends with such a sample. If it has none, the last interval
// of a wait is written separately, as another piece of it.

// maxOwed bounds what is owed, and weights: no wait takes that long.
const maxOwed = 1 << 60

// waits is the state of a Stream for samples of wall time.
type waits struct {
	owed  []int64  // by thread: the weight that its samples were not written with, in the event's unit
	told  []uint32 // by pending sample: the intervals it is written as; 1 if it is not a sample of wall time
	order []uint32 // in which the pending samples are written
	held  []uint32
}

// arrange decides for all pending samples as how many intervals they are written, and orders them.
// Nothing follows the last samples of a recording.
func (s *Stream) arrange(events []profile.Event, last bool) {
	w := &s.waits
	w.told, w.order, w.held = w.told[:0], w.order[:0], w.held[:0]
	if bytes.IndexByte(s.types, typeWallClockSample) < 0 {
		return
	}
	one, any := -1, false
	for i := range s.pending {
		n := uint32(1)
		if p := &s.pending[i]; s.isWall(p, events) {
			any = true
			if n = w.intervals(p, &events[p.Event]); n == 1 {
				one = i
			}
		}
		w.told = append(w.told, n)
	}
	if !any || bytes.IndexByte(s.types, typeExecutionSample) < 0 {
		return
	}
	switch {
	case last:
		one = -1
	case one < 0:
		one = s.makeOne(events)
	}
	for i := range s.pending {
		switch wall := s.isWall(&s.pending[i], events); {
		case i == one:
		case wall && w.told[i] != 1:
			w.held = append(w.held, uint32(i))
		default:
			if wall {
				w.order, w.held = append(w.order, w.held...), w.held[:0]
			}
			w.order = append(w.order, uint32(i))
		}
	}
	w.order = append(w.order, w.held...)
	if one >= 0 {
		w.order = append(w.order, uint32(one))
	}
}

func (s *Stream) isWall(p *profile.Sample, events []profile.Event) bool {
	return s.typeOf(p.Event, events) == typeWallClockSample
}

// intervals returns how many samples, taken at the event's interval, other readers see in a sample
// of wall time: a wait weighs as long as it was. The remainder goes to the thread's next sample, so
// that the sum of a thread is right; a short wait may have none.
func (w *waits) intervals(p *profile.Sample, e *profile.Event) uint32 {
	if e.Period == 0 || e.Period > maxOwed || p.Weight > maxOwed {
		return 1
	}
	w.owed = at(w.owed, p.Thread)
	owed := w.owed[p.Thread] + int64(p.Weight)
	n := min(max(owed+int64(e.Period/2), 0)/int64(e.Period), math.MaxInt32)
	w.owed[p.Thread] = min(max(owed-n*int64(e.Period), -maxOwed), maxOwed)
	return uint32(n)
}

// makeOne makes one of the pending samples of wall time, of which none is, one interval, and
// returns its index. The best is the last piece of a wait, of that length: candid joins both again
// when it reads them. If no wait is long enough, the sample that is nearest to one interval is
// written as one, and the rest is owed.
func (s *Stream) makeOne(events []profile.Event) int {
	w, best := &s.waits, -1
	off := func(i int) uint32 { return max(w.told[i], 1) - min(w.told[i], 1) }
	for i := len(s.pending) - 1; i >= 0; i-- {
		p := &s.pending[i]
		if !s.isWall(p, events) {
			continue
		}
		if e := &events[p.Event]; w.told[i] > 1 && p.State >= profile.StateSleeping && p.Weight > e.Period && p.Time >= p.Weight && e.Unit == "nanoseconds" {
			piece := *p
			piece.Weight = e.Period
			piece.Flags |= profile.Continued
			p.Weight -= e.Period
			p.Time -= e.Period
			w.told[i]--
			s.pending, w.told = append(s.pending, piece), append(w.told, 1)
			return len(s.pending) - 1
		}
		if best < 0 || off(i) < off(best) {
			best = i
		}
	}
	p := &s.pending[best]
	if period := int64(events[p.Event].Period); period > 0 && period <= maxOwed {
		owed := &w.owed[p.Thread]
		*owed = min(max(*owed+(int64(w.told[best])-1)*period, -maxOwed), maxOwed)
	}
	w.told[best] = 1
	return best
}
