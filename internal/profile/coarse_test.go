package profile_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestCoarseEvents compares with the rows of the method list, event by event.
func TestCoarseEvents(t *testing.T) {
	seen := map[bool]int{}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := profiletest.Server(60, 300, 10)
		rough := r.Float64() * r.Float64() / 4 // of the frames, from none to a quarter
		for i := range p.Frames {
			p.Frames[i].Flags &^= walk.Coarse
			if p.Frames[i].Prov != walk.Heuristic && r.Float64() < rough {
				p.Frames[i].Flags |= walk.Coarse
			}
		}
		got := p.CoarseEvents()
		if len(got) != len(p.Events) {
			t.Fatalf("of %d events: %v", len(p.Events), got)
		}
		for event := range p.Events {
			want := slices.ContainsFunc(p.Select(profile.Filter{Event: event}).List(), func(m profile.MethodCount) bool { return m.Coarse*2 > m.Self.Samples })
			if got[event] != want {
				t.Errorf("seed %d, event %d: %v, by the method list %v", seed, event, got[event], want)
			}
			if summed := profile.Summed(p).CoarseEvents(); summed[event] != want {
				t.Errorf("seed %d, event %d: of sums %v, by the method list %v", seed, event, summed[event], want)
			}
			seen[want]++
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("coarse or not: %v", seen)
	}
}
