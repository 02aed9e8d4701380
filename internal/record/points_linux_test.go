package record

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// byFunction sums up an event's samples and weights for stacks that contain each of the functions;
// "" is all stacks.
func byFunction(p *profile.Profile, event int, functions ...string) map[string]profile.Count {
	sums := map[string]profile.Count{}
	for i := range p.Samples {
		s := &p.Samples[i]
		if int(s.Event) != event {
			continue
		}
		seen := map[string]bool{"": true}
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			seen[p.Funcs[p.Frames[p.Nodes[n].Frame].Func].Name] = true
		}
		for _, f := range append(functions, "") {
			if seen[f] {
				c := sums[f]
				c.Add(profile.Count{Samples: 1, Weight: s.Weight})
				sums[f] = c
			}
		}
	}
	return sums
}

// One recording of several events at once: each event reports how often things happened that the
// program did a known number of times, and which function did them.
func TestCountsAreTrue(t *testing.T) {
	out := output(t)
	defer out()
	r := run(t, Options{Command: []string{compile(t, "hits")}, Events: []string{
		"page-faults/period=32/", "uprobe:libc.so.6:malloc", "syscalls:sys_enter_getppid", "cpu",
	}})
	if code, _, err := r.Wait(); code != 0 || err != nil {
		t.Fatalf("the program: %d, %v", code, err)
	}
	p := r.Profile
	if err := p.Check(); err != nil || p.Losses.Lost > 0 {
		t.Fatalf("%v, %d lost", err, p.Losses.Lost)
	}
	faults := byFunction(p, 0, "touch_pages")
	if got := float64(faults["touch_pages"].Weight); math.Abs(got-200000) > 4000 {
		t.Errorf("%.0f page faults in touch_pages, not 200,000", got)
	}
	mallocs := byFunction(p, 1, "allocate_few", "allocate_many")
	if few, many := mallocs["allocate_few"], mallocs["allocate_many"]; few != (profile.Count{Samples: 1000, Weight: 1000}) || many != (profile.Count{Samples: 4000, Weight: 4000}) {
		t.Errorf("%v calls of malloc from allocate_few, not 1000; %v from allocate_many, not 4000", few, many)
	}
	calls := byFunction(p, 2, "call_kernel")
	if calls["call_kernel"].Weight != 3000 || calls[""] != calls["call_kernel"] {
		t.Errorf("%v calls of the kernel, %v of them from call_kernel, not 3000", calls[""], calls["call_kernel"])
	}
	for i := range p.Samples {
		if s := &p.Samples[i]; s.Event == 2 && p.Syscalls[s.Syscall] != "getppid" {
			t.Errorf("a sample of getppid is in %q", p.Syscalls[s.Syscall])
			break
		}
	}
	t.Logf("%v page faults, %v mallocs, %v calls", faults, mallocs, calls)
	q := p.Quality()
	if q.Complete < q.Samples*99/100 {
		t.Errorf("of %d stacks %d are complete, %d broken", q.Samples, q.Complete, q.Broken)
	}
}

// The samples of a counter with a requested rate stand for everything that it counts in the
// targets, whatever else happens on the CPU, and for the functions that caused it: a tracepoint at
// the same place counts each.
func TestSampledCountsAreTrue(t *testing.T) {
	out := output(t)
	defer out()
	program := compile(t, "switches")
	// If other threads switch more often than the kernel reports, it is a guess whose the
	// unreported switches were.
	fixture.Attempts(t, 8, func() string {
		r := run(t, Options{Command: []string{program}, Hz: 499, Events: []string{"cs", "sched:sched_switch"}})
		if code, _, err := r.Wait(); code != 0 || err != nil {
			t.Fatalf("the program: %d, %v", code, err)
		}
		p := r.Profile
		if err := p.Check(); err != nil || p.Losses.Lost > 0 {
			return fmt.Sprintf("%v, %d lost", err, p.Losses.Lost)
		}
		got, want := byFunction(p, 0, "seldom", "often"), byFunction(p, 1, "seldom", "often")
		t.Logf("%v sampled, %v counted", got, want)
		n := float64(got[""].Samples)
		if want["seldom"].Weight < 1900 || want["often"].Weight < 7600 || n < 100 {
			return fmt.Sprintf("%v counted, %v sampled", want, got)
		}
		// Switches that are missing came after the last sample; those that are too many were done
		// by others while the kernel reported none.
		if all, seen := float64(want[""].Weight), float64(got[""].Weight); math.Abs(seen-all) > 0.15*all {
			return fmt.Sprintf("samples stand for %.0f of %.0f switches", seen, all)
		}
		share := func(c map[string]profile.Count) float64 { return float64(c["seldom"].Weight) / float64(c[""].Weight) }
		if chance := 5 * math.Sqrt(0.2*0.8/n); math.Abs(share(got)-share(want)) > chance {
			return fmt.Sprintf("%.3f of them in seldom, not %.3f, chance explains %.3f", share(got), share(want), chance)
		}
		return ""
	})
}

// An event that does not exist is reported in one line.
func TestNoSuchEvent(t *testing.T) {
	pid := spin(t).Process.Pid
	for name, want := range map[string]string{
		"cycles":                    "no hardware counters",
		"L1-dcache-load-misses":     "this machine does not count L1-dcache-load-misses",
		"sched:sched_swich":         "did you mean sched:sched_switch",
		"nonsense:nonsense":         "no tracepoint nonsense:nonsense",
		"uprobe:libnone.so:f":       "has mapped no file of that name",
		"uprobe:/none:f":            "put a probe into /none",
		"uprobe:/proc/self/maps:f":  "put a probe",
		"uprobe:libc.so.6:mallocc":  "libc.so.6",
		"uprobe:libc.so.6:malloc_i": "libc.so.6",
	} {
		r, err := Run(t.Context(), Options{PIDs: []int{pid}, Hz: 99, Events: []string{name}, Duration: 1})
		if name == "cycles" && err == nil {
			continue // this machine counts them
		}
		if err == nil {
			t.Errorf("%s is recorded: %d samples", name, len(r.Profile.Samples))
		} else if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
