package agent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/agent/config"
)

// limitedAgent is an agent of which a test says what it uses.
type limitedAgent struct {
	l        limiter
	now      time.Time
	cpu      time.Duration
	resident uint64
	did      []string
}

func newLimited(limits config.Limits) *limitedAgent {
	a := &limitedAgent{now: time.Unix(1e9, 0), resident: 100e6}
	a.l.a = &Agent{conf: &config.Config{Limits: limits}, o: Options{Log: func(string) {}}}
	a.l.act = actions{
		cpu:      func() time.Duration { return a.cpu },
		resident: func() (uint64, bool) { return a.resident, true },
		throttle: func(times int, _ string) error {
			a.did = append(a.did, fmt.Sprint(times))
			return nil
		},
		restart: func() error {
			a.did = append(a.did, "anew")
			return nil
		},
	}
	return a
}

// uses lets a time pass in which the agent uses a share of the CPUs, and returns what it did meanwhile.
func (a *limitedAgent) uses(share float64, d time.Duration) (did []string) {
	for end := a.now.Add(d); a.now.Before(end); {
		a.now = a.now.Add(time.Second)
		a.cpu += time.Duration(share * float64(cpus()) * float64(time.Second))
		a.l.look(a.now)
	}
	did, a.did = a.did, nil
	return did
}

// An agent that uses too much CPU time samples less often, step by step and never again at all, and as often as asked
// for when it uses little.
func TestCPULimit(t *testing.T) {
	a := newLimited(config.Limits{CPU: 0.02})
	for i, step := range []struct {
		share float64
		d     time.Duration
		want  []string
	}{
		{0.5, 25 * time.Second, nil}, // attaching
		{0.019, 5 * time.Minute, nil},
		{0.03, 30 * time.Second, []string{"2"}},
		{0.03, 3 * time.Minute, []string{"4", "8", "16"}},
		{0.03, 10 * time.Minute, nil}, // no less often
		{0.01, 20 * time.Minute, nil}, // within the limit, but not by far
		{0.002, 6 * time.Minute, []string{"8"}},
		{0.002, 20 * time.Minute, []string{"4", "2", "1"}},
		{0.002, 20 * time.Minute, nil},
	} {
		if i == 1 {
			a.l.begun(nil) // what attaching took does not count
		}
		if did := a.uses(step.share, step.d); !slices.Equal(did, step.want) {
			t.Errorf("step %d: with %g %% of the CPUs for %v the rate is divided by %v, want %v", i, step.share*100, step.d, did, step.want)
		}
	}
}

// An agent that takes too much memory samples less often before recording begins anew, and nothing happens below the
// limit.
func TestMemoryLimit(t *testing.T) {
	a := newLimited(config.Limits{Memory: 200e6})
	if did := a.uses(0.001, 10*time.Minute); did != nil {
		t.Errorf("within the limit: %v", did)
	}
	a.resident = 230e6
	if did := a.uses(0.001, 10*time.Second); !slices.Equal(did, []string{"2"}) {
		t.Errorf("above the limit for 10 s: %v", did)
	}
	if times, why := a.l.rate(); times != 2 || why != "candid uses 230 MB of memory, its limit is 200 MB" {
		t.Errorf("%d times less often: %q", times, why)
	}
	if did := a.uses(0.001, 90*time.Second); !slices.Contains(did, "anew") {
		t.Errorf("above the limit for a long time: %v", did)
	}
	a.resident = 120e6
	if did := a.uses(0.001, time.Hour); len(did) == 0 || did[len(did)-1] != "1" || slices.Contains(did, "anew") {
		t.Errorf("below the limit again: %v", did)
	}
}

// The heap has what the limit leaves.
func TestHeapOf(t *testing.T) {
	for _, c := range []struct{ limit, least, most int64 }{{0, mostHeap, mostHeap}, {64e6, leastHeap, 20e6}, {100e6, 30e6, 40e6}, {150e6, 60e6, 80e6}, {200e6, mostHeap, mostHeap}, {2e9, mostHeap, mostHeap}} {
		if got := heapOf(c.limit); got < c.least || got > c.most {
			t.Errorf("of %d MB the heap gets %d MB", c.limit/1e6, got/1e6)
		}
	}
}
