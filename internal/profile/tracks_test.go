package profile_test

import (
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// The parts that ByTrack returns hold every sample once, however the profile keeps them.
func TestLanesHaveEverySampleOnce(t *testing.T) {
	p := profiletest.Java()
	slices.Reverse(p.Samples) // so that the order of time differs
	for _, keep := range []profile.Keep{profile.KeepSamples, profile.KeepPacked, profile.KeepTracks} {
		b := profile.NewBuilder()
		b.Keep(keep)
		left := map[profile.Sample]int{}
		for _, s := range p.Samples {
			b.Add(s)
			left[s]++
		}
		seen := map[profile.Track]bool{}
		for _, l := range profile.ByTrack(b.Finish()) {
			weight, last, n := uint64(0), uint64(0), 0
			l.Each(func(i int, s *profile.Sample) {
				if s.Thread != l.Thread || s.Event != l.Event || s.Time < last || i != n {
					t.Fatalf("keeping %d: sample %d of thread %d at %d in the track %+v after %d", keep, i, s.Thread, s.Time, l.Track, last)
				}
				last, n = s.Time, n+1
				weight += s.Weight
				if left[*s]--; left[*s] == 0 {
					delete(left, *s)
				}
			})
			if n == 0 || n != l.Samples || weight != l.Weight || seen[l.Track] {
				t.Errorf("keeping %d: %d samples weigh %d, is %d and %d", keep, n, weight, l.Samples, l.Weight)
			}
			seen[l.Track] = true
		}
		if len(left) > 0 {
			t.Errorf("keeping %d: %d samples are in no track, or in two", keep, len(left))
		}
	}
}
