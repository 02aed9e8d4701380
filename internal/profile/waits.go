package profile

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/walk"
)

// A wait that goes on is reported in pieces, so that a recording holds it however it ends. The
// pieces are joined to one sample again: there is one sample for each wait, and its time is known
// to the nanosecond.

// apart is how long after the end of a piece the next one may begin, ns: a thread that woke up
// waits for a CPU before it reports.
const apart = 1_000_000_000

// FollowsOn reports whether s is the next piece of the wait that before is a piece of.
func (s *Sample) FollowsOn(before *Sample) bool {
	if s.Flags&Continued == 0 || before.Thread != s.Thread || before.Event != s.Event || before.State < StateSleeping {
		return false
	}
	begin := s.Time - min(s.Time, s.Weight)
	return begin <= before.Time+apart && before.Time <= begin+apart
}

// Take adds the piece before to s.
func (s *Sample) Take(before *Sample) {
	s.Weight += before.Weight
	s.Flags = s.Flags&^Continued | before.Flags&Continued
}

// byTrack sorts waits in the order in which their pieces follow each other.
func byTrack(a, b *Sample) int {
	switch {
	case a.Thread != b.Thread:
		return cmp.Compare(a.Thread, b.Thread)
	case a.Event != b.Event:
		return cmp.Compare(a.Event, b.Event)
	}
	return cmp.Compare(a.Time, b.Time)
}

// joinWaits joins the pieces of waits, each at the place of the last one. A stack that takes long
// to name may come after the next piece.
func joinWaits(samples []Sample) []Sample {
	var waits []uint32
	for i := range samples {
		if samples[i].State >= StateSleeping {
			waits = append(waits, uint32(i))
		}
	}
	slices.SortStableFunc(waits, func(a, b uint32) int { return byTrack(&samples[a], &samples[b]) })
	gone := make([]bool, len(samples))
	for k, i := range waits {
		s := &samples[i]
		if s.Flags&Continued == 0 {
			continue
		}
		if k > 0 && s.FollowsOn(&samples[waits[k-1]]) {
			s.Take(&samples[waits[k-1]])
			gone[waits[k-1]] = true
		}
		s.Flags &^= Continued
	}
	kept := samples[:0]
	for i := range samples {
		if !gone[i] {
			kept = append(kept, samples[i])
		}
	}
	return kept
}

// joined is joinWaits for a log, whose samples must not all be unpacked at once.
func (l *sampleLog) joined() *sampleLog {
	// The waits in their order, with their places in the log instead of their stacks.
	waits := sorter{room: l.room, compare: byTrack}
	at := uint32(0)
	l.each(func(s *Sample) {
		if s.State >= StateSleeping {
			wait := *s
			wait.Node = at
			waits.add(wait)
		}
		at++
	})
	// The results for pieces, in the order of the log. End marks those that are gone because they
	// are part of a later one.
	const stays, gone = 0, 1
	become := sorter{room: l.room, compare: func(a, b *Sample) int { return cmp.Compare(a.Node, b.Node) }}
	var before Sample
	first, changed := true, false
	settle := func(end walk.End) {
		if changed || end == gone {
			before.End = end
			become.add(before)
		}
	}
	waits.each(func(s *Sample) {
		piece := s.Flags&Continued != 0
		follows := piece && !first && s.FollowsOn(&before)
		if follows {
			s.Take(&before)
			settle(gone)
		} else if !first {
			settle(stays)
		}
		s.Flags &^= Continued
		before, first, changed = *s, false, piece
	})
	if !first {
		settle(stays)
	}
	out := l.room.log()
	r, next := l.reader(), uint32(0)
	copyTo := func(end uint32) {
		for next < end && r.next() {
			out.add(r.s)
			next++
		}
	}
	become.each(func(s *Sample) {
		copyTo(s.Node)
		if r.next() && s.End != gone {
			one := r.s
			one.Weight, one.Flags = s.Weight, s.Flags
			out.add(one)
		}
		next++
	})
	copyTo(at)
	out.trim()
	return out
}
