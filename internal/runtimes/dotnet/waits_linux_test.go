package dotnet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
)

// TestWaits records threads that wait, each in its own way, by wall time: the states say how.
func TestWaits(t *testing.T) {
	for _, major := range fixture.DotNets {
		if major == 8 && !fixture.Full(t) {
			continue
		}
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			tooLittle := fixture.Watch(t)
			target := dotnet{major: major}.start(t, fixture.CSharp(t, major, "testdata/Waits.cs"), nil)
			p := recorded(t, record.Options{PIDs: []int{target.PID()}, Duration: time.Second, Hz: 49, Events: []string{"wall"}})
			want := map[string]profile.State{
				"wait": profile.StateWaiting, "slim": profile.StateWaiting, "event": profile.StateWaiting, "any": profile.StateWaiting,
				"task": profile.StateWaiting, "join": profile.StateWaiting, "sleep": profile.StateSleeping, "sleeper": profile.StateSleeping,
				"reader": profile.StateBlocked, ".NET TP Worker": profile.StateParked,
			}
			if major >= 10 { // before, entering a monitor is native code without names
				want["enter"] = profile.StateBlocked
			}
			seen := map[string]map[profile.State]int{}
			for _, s := range p.Samples {
				name := p.Threads[s.Thread].Name
				if seen[name] == nil {
					seen[name] = map[profile.State]int{}
				}
				seen[name][s.State]++
			}
			for name, state := range want {
				switch states := seen[name]; {
				case len(states) == 0:
					tooLittle("no samples of %s; %v", name, seen)
				case states[state] == 0 || len(states) > 1 && name != ".NET TP Worker":
					t.Errorf("%s is in %v, not %v", name, states, state)
				}
			}
		})
	}
}
