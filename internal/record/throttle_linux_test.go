package record

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// A recording that is told to samples less often, and its samples still stand for all of the time.
func TestThrottle(t *testing.T) {
	c := spin(t)
	said := make(chan string, 100)
	r := started(t, Options{PIDs: []int{c.Process.Pid}, Events: []string{"cpu"}, Hz: 499, Log: func(line string) {
		select {
		case said <- line:
		default:
		}
	}})
	if r.engine.Name() != "bpf" {
		_, _ = r.Stop()
		t.Skipf("the engine %s has one rate", r.engine.Name())
	}
	part := func() (hz, share float64) {
		time.Sleep(time.Second) // the periods change with the next look
		if _, err := r.Rotate(nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		p, err := r.Rotate(nil)
		if err != nil {
			t.Fatal(err)
		}
		weight := float64(p.Profile.EventWeights()[0])
		return float64(p.Profile.SampleCount()) / weight * 1e9, weight / float64(p.Costs.TargetCPU)
	}
	wrong := ""
	for _, times := range []int{1, 8, 1} {
		if times > 1 {
			if err := r.Throttle(times, "a test says so"); err != nil {
				t.Fatal(err)
			}
		} else if err := r.Throttle(1, ""); err != nil {
			t.Fatal(err)
		}
		want := 499 / float64(times)
		hz, share := part()
		for range 4 { // on a busy machine the next look may be late
			t.Logf("1/%d: %.0f samples each second of CPU time, weights %.2f of the CPU time", times, hz, share)
			if hz >= want*0.85 && hz <= want*1.15 {
				break
			}
			hz, share = part()
		}
		if hz < want*0.85 || hz > want*1.15 {
			wrong += fmt.Sprintf("1/%d: %.0f samples each second of CPU time, want %.0f; ", times, hz, want)
		}
	}
	if _, err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	told := ""
	for len(said) > 0 {
		told += <-said + "\n"
	}
	switch {
	case wrong == "":
	case strings.Contains(told, "too little of the CPUs"):
		fixture.NotPermitted(t, "%sthe engine slowed down by itself: %s", wrong, told)
	default:
		t.Error(wrong)
	}
	for _, want := range []string{"8 times less often", "a test says so", "as often as asked for again"} {
		if !strings.Contains(told, want) {
			t.Errorf("it does not say %q:\n%s", want, told)
		}
	}
}

// Processes have the services that they are given, also those of which a part has samples already.
func TestServices(t *testing.T) {
	c := spin(t)
	r := started(t, Options{PIDs: []int{c.Process.Pid}, Events: []string{"cpu"}, Hz: 499, Service: func(s Subject) (string, string) {
		if s.Target == nil || s.PID != c.Process.Pid {
			return "other", ""
		}
		return "first", "container"
	}})
	of := func(p *profile.Profile) profile.Process {
		for _, x := range p.Processes {
			if x.PID == c.Process.Pid {
				return x
			}
		}
		t.Fatalf("no process %d in %v", c.Process.Pid, p.Processes)
		return profile.Process{}
	}
	time.Sleep(300 * time.Millisecond)
	p, err := r.Rotate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if x := of(p.Profile); x.Service != "first" || x.Container != "container" {
		t.Errorf("%+v", x)
	}
	r.Rename(func(Subject) (string, string) { return "second", "" })
	last, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if x := of(last.Profile); x.Service != "second" || x.Container != "" {
		t.Errorf("%+v", x)
	}
}
