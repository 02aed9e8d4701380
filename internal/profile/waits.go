package profile

import (
	"cmp"
	"slices"
)

// A wait that goes on is told of in pieces, so that a recording holds it whatever ends it.
// Put together they are one sample again: there is one sample for each wait, and when it
// was is known to the nanosecond.

// apart is how far from the piece before the next one may begin, ns: a thread that woke up
// waits for a CPU before it tells.
const apart = 1_000_000_000

// FollowsOn says whether s is the next piece of the wait that before is of.
func (s *Sample) FollowsOn(before *Sample) bool {
	if s.Flags&Continued == 0 || before.Thread != s.Thread || before.Event != s.Event || before.State < StateSleeping {
		return false
	}
	begin := s.Time - min(s.Time, s.Weight)
	return begin <= before.Time+apart && before.Time <= begin+apart
}

// Take makes s the sample of the wait that before is a piece of, too.
func (s *Sample) Take(before *Sample) {
	s.Weight += before.Weight
	s.Flags = s.Flags&^Continued | before.Flags&Continued
}

// joinWaits puts the pieces of waits together, each in the last one's place. A stack that
// takes long to name may come after the next piece.
func joinWaits(samples []Sample) []Sample {
	var waits []uint32
	for i := range samples {
		if samples[i].State >= StateSleeping {
			waits = append(waits, uint32(i))
		}
	}
	slices.SortStableFunc(waits, func(a, b uint32) int {
		x, y := &samples[a], &samples[b]
		return cmp.Or(cmp.Compare(x.Thread, y.Thread), cmp.Compare(x.Event, y.Event), cmp.Compare(x.Time, y.Time))
	})
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
