package view

import (
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
)

// A wait that goes on is reported in pieces. In a recording that grows each new piece absorbs the
// one before, as in a reader of the whole file.

// taken marks a sample that another one has absorbed.
const taken = ^profile.SampleFlags(0)

// maxBack is among how many of a thread's last samples the previous piece is searched.
const maxBack = 256

// join merges pieces among new samples, and returns the indices of the recording's samples that new
// ones have absorbed. Nothing shows those yet.
func (r *Recording) join(fresh []profile.Sample) (gone []uint32) {
	type key struct {
		thread uint32
		event  uint16
	}
	last := map[key]int{}
	for i := range fresh {
		s := &fresh[i]
		if s.State < profile.StateSleeping {
			continue
		}
		k := key{s.Thread, s.Event}
		at, known := last[k]
		last[k] = i
		if s.Flags&profile.Continued == 0 {
			continue
		}
		if known {
			if before := &fresh[at]; s.FollowsOn(before) {
				s.Take(before)
				before.Flags = taken
			}
		} else if old, ok := r.lastWait(s); ok {
			s.Take(&r.p.Samples[old])
			gone = append(gone, old)
		}
		s.Flags &^= profile.Continued
	}
	return gone
}

// lastWait finds the piece that a new one continues.
func (r *Recording) lastWait(s *profile.Sample) (uint32, bool) {
	if int(s.Thread)+1 >= len(r.first) {
		return 0, false
	}
	list := r.byThread[r.first[s.Thread]:r.first[s.Thread+1]]
	for _, i := range slices.Backward(list[max(0, len(list)-maxBack):]) {
		if before := &r.p.Samples[i]; before.Event == s.Event && before.State >= profile.StateSleeping {
			return i, s.FollowsOn(before)
		}
	}
	return 0, false
}

// sweep removes the samples that were absorbed.
func (r *Recording) sweep() {
	n := 0
	for i, s := range r.p.Samples {
		if s.Flags != taken {
			r.p.Samples[n], r.at[n] = s, r.at[i]
			n++
		}
	}
	r.p.Samples, r.at = r.p.Samples[:n], r.at[:n]
}
