package profile_test

import (
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

func TestTracksHaveEverySampleOnce(t *testing.T) {
	p := profiletest.Java()
	slices.Reverse(p.Samples) // so that the order of time is another
	seen := make([]bool, len(p.Samples))
	for _, track := range profile.Tracks(p) {
		weight, last := uint64(0), uint64(0)
		for _, i := range track.Samples {
			s := &p.Samples[i]
			if seen[i] || s.Thread != track.Key.Thread || s.Event != track.Key.Event || s.Time < last {
				t.Fatalf("sample %d of thread %d at %d in the track %+v after %d, seen %v", i, s.Thread, s.Time, track.Key, last, seen[i])
			}
			seen[i], last = true, s.Time
			weight += s.Weight
		}
		if len(track.Samples) == 0 || weight != track.Weight {
			t.Errorf("%d samples weigh %d, is %d", len(track.Samples), weight, track.Weight)
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		t.Errorf("sample %d is in no track", i)
	}
}
