package record

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// Each way in which a Java thread waits has its own state, for threads that wait
// all the time of the recording.
func TestJavaWaits(t *testing.T) {
	for _, major := range []int{8, 17, 25} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			classes := fixture.Classes(t, major, filepath.Join("testdata", "Waits.java"))
			p := fixture.Start(t, exec.Command(fixture.JDKTool(t, major, "java"), "-Xmx64m", "-cp", classes, "Waits"))
			p.Await("ready")
			for _, engine := range []string{"auto", "suspend"} {
				checkJavaWaits(t, major, engine, run(t, Options{PIDs: []int{p.PID()}, Engine: engine, Events: []string{"wall"}, Duration: time.Second}).Profile)
			}
		})
	}
}

func checkJavaWaits(t *testing.T, major int, engine string, p *profile.Profile) {
	t.Helper()
	states := map[string]map[profile.State]uint64{}
	for i := range p.Samples {
		s := &p.Samples[i]
		name := p.Threads[s.Thread].Name
		if states[name] == nil {
			states[name] = map[profile.State]uint64{}
		}
		states[name][s.State] += s.Weight
	}
	for name, want := range map[string]profile.State{
		"parker": profile.StateParked, "waiter": profile.StateWaiting, "enterer": profile.StateBlocked,
		"sleeper": profile.StateSleeping, "main": profile.StateSleeping,
	} {
		all := uint64(0)
		for _, time := range states[name] {
			all += time
		}
		// On a busy machine it takes a while until recording begins.
		if got := states[name][want]; got < all*95/100 || all < uint64(time.Second)/2 {
			t.Errorf("%s: %s is %v for %v of %v: %v", engine, name, want, time.Duration(got), p.Meta.Duration, states[name])
		}
	}
}
