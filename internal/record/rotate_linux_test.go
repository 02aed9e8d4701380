package record

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// started starts a recording that ends with the test.
func started(t *testing.T, o Options) *Recording {
	t.Helper()
	if o.Hz == 0 {
		o.Hz = 997
	}
	r, err := Start(t.Context(), o)
	if errors.Is(err, capture.ErrPermission) || errors.Is(err, capture.ErrUnsupported) {
		t.Skipf("recording is not possible here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// partTaker counts the samples of a part as they come.
type partTaker struct {
	samples uint64
	last    uint64 // the time of the latest one
	begun   Begun
}

func (k *partTaker) Begin(b Begun) { k.begun = b }
func (k *partTaker) Sample(_ *profile.Builder, s profile.Sample) {
	k.samples++
	k.last = max(k.last, s.Time)
}
func (k *partTaker) Batch(*profile.Builder, Progress) {}

// Each sample is in exactly one of a recording's parts, whatever engine takes it, and each part is a
// recording of its own: its times begin with 0, its costs are its own.
func TestRotate(t *testing.T) {
	for _, engine := range []string{"auto", "perf", "suspend"} {
		t.Run(engine, func(t *testing.T) {
			c := spin(t)
			takers := []*partTaker{{}, {}, {}}
			asked := time.Now() // the recording begins between this and the return of Start
			r := started(t, Options{PIDs: []int{c.Process.Pid}, Events: []string{"cpu"}, Engine: engine, Beside: takers[0]})
			began := time.Now()
			var parts []*Result
			for _, next := range takers[1:] {
				time.Sleep(700 * time.Millisecond)
				p, err := r.Rotate(next)
				if err != nil {
					t.Fatal(err)
				}
				parts = append(parts, p)
			}
			time.Sleep(700 * time.Millisecond)
			last, err := r.Stop()
			if err != nil {
				t.Fatal(err)
			}
			all, atMost := time.Since(began), time.Since(asked)
			parts = append(parts, last)

			var samples uint64
			var length time.Duration
			for i, p := range parts {
				n, prof := p.Profile.SampleCount(), p.Profile
				samples += n
				length += prof.Meta.Duration
				t.Logf("part %d: %d samples in %v, %v of CPU, weights %v", i, n, prof.Meta.Duration, p.Costs.TargetCPU, prof.EventWeights())
				if n == 0 || takers[i].samples != n {
					t.Errorf("part %d has %d samples, %d came beside it", i, n, takers[i].samples)
				}
				if p.Costs.Stats.Samples != n {
					t.Errorf("part %d has %d samples, the engine handed over %d", i, n, p.Costs.Stats.Samples)
				}
				if at := time.Duration(takers[i].last); at > prof.Meta.Duration+10*time.Millisecond {
					t.Errorf("part %d has a sample at %v, after its end at %v", i, at, prof.Meta.Duration)
				}
				if prof.Meta.Start.Before(began.Add(-time.Second)) || i > 0 && !prof.Meta.Start.After(parts[i-1].Profile.Meta.Start) || !takers[i].begun.Start.Equal(prof.Meta.Start) {
					t.Errorf("part %d began at %v", i, prof.Meta.Start)
				}
				if cpu := p.Costs.TargetCPU; cpu <= 0 || cpu > prof.Meta.Duration*3/2 {
					t.Errorf("part %d of %v used %v of CPU", i, prof.Meta.Duration, cpu)
				}
				if err := prof.Check(); err != nil {
					t.Errorf("part %d: %v", i, err)
				}
			}
			if stats := r.engine.Stats(); stats.Samples != samples {
				t.Errorf("%d samples in all parts, the engine handed over %d", samples, stats.Samples)
			}
			if length > atMost || length < all-500*time.Millisecond {
				t.Errorf("the parts are %v long, the recording between %v and %v", length, all, atMost)
			}
			if _, err := r.Rotate(nil); !errors.Is(err, ErrEnded) {
				t.Errorf("a part after the end: %v", err)
			}
		})
	}
}

// A sleep that goes on over the end of a part is in both of them, each with its own share and with
// its stack.
func TestRotateAsleep(t *testing.T) {
	for _, engine := range []string{"auto", "suspend"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // it sleeps, and so does candid
			c := exec.Command(compile(t, "naps"))
			if err := fixture.Spawn(c); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Process.Kill(); c.Wait() })
			time.Sleep(200 * time.Millisecond)
			r := started(t, Options{PIDs: []int{c.Process.Pid}, Events: []string{"wall"}, Engine: engine})
			var parts []*Result
			for range 2 {
				time.Sleep(2500 * time.Millisecond)
				p, err := r.Rotate(nil)
				if err != nil {
					t.Fatal(err)
				}
				parts = append(parts, p)
			}
			time.Sleep(2500 * time.Millisecond)
			last, err := r.Stop()
			if err != nil {
				t.Fatal(err)
			}
			var whole time.Duration
			asleep := map[string]time.Duration{}
			for i, p := range append(parts, last) {
				whole += p.Profile.Meta.Duration
				for _, s := range p.Profile.Samples {
					if s.State < profile.StateSleeping {
						continue
					}
					asleep[p.Profile.Threads[s.Thread].Name] += time.Duration(s.Weight)
					if s.Node == profile.RootNode {
						t.Errorf("part %d: a sleep of %v has no stack", i, time.Duration(s.Weight))
					}
				}
			}
			t.Logf("%v in %v", asleep, whole)
			for name, got := range asleep {
				if got > whole+50*time.Millisecond || got < whole*7/10 {
					t.Errorf("%s slept for %v in %v", name, got, whole)
				}
			}
			if len(asleep) != 2 {
				t.Errorf("%d threads slept: %v", len(asleep), asleep)
			}
		})
	}
}

// Each part describes the machine and the VM, and names its methods and threads.
func TestRotateJava(t *testing.T) {
	classes := fixture.Classes(t, 21, filepath.Join("..", "..", "workloads", "Truth.java"))
	c := exec.Command(fixture.JDKTool(t, 21, "java"), "-Xmx64m", "-cp", classes, "Truth", "60")
	java := fixture.Start(t, c)
	time.Sleep(time.Second)
	r := started(t, Options{PIDs: []int{java.PID()}, Events: []string{"cpu"}})
	time.Sleep(1500 * time.Millisecond)
	first, err := r.Rotate(nil)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	second, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range []*profile.Profile{first.Profile, second.Profile} {
		seen := map[uint16]int{}
		for _, o := range p.Observations {
			seen[o.Kind]++
		}
		for _, kind := range []int{profile.OSInformation, profile.CPUInformation, profile.JVMInformation, profile.InitialSystemProperty, profile.GCConfiguration, profile.NativeLibrary} {
			if seen[uint16(kind)] == 0 {
				t.Errorf("part %d: no %s", i, profile.ObservationKinds[kind].Name)
			}
		}
		if len(p.Processes) != 1 || p.Processes[0].Runtime == "" {
			t.Errorf("part %d: %+v", i, p.Processes)
		}
		named := 0
		for _, f := range p.Funcs {
			if !f.NoName && f.File == "Truth.java" {
				named++
			}
		}
		if named == 0 {
			t.Errorf("part %d names none of the program's %d functions", i, len(p.Funcs))
		}
		var kinds int
		for _, th := range p.Threads {
			if th.Kind != "" {
				kinds++
			}
		}
		if kinds == 0 || p.SampleCount() == 0 {
			t.Errorf("part %d: %d threads of a known kind, %d samples", i, kinds, p.SampleCount())
		}
	}
}

// A target that is added is sampled from then on.
func TestAddTarget(t *testing.T) {
	for _, engine := range []string{"auto", "perf", "suspend"} {
		t.Run(engine, func(t *testing.T) {
			one, two := spin(t), spin(t)
			r := started(t, Options{PIDs: []int{one.Process.Pid}, Events: []string{"cpu"}, Engine: engine})
			time.Sleep(500 * time.Millisecond)
			asked, err := cpuTime(two.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.AddTarget(two.Process.Pid); err != nil {
				t.Fatal(err)
			}
			if err := r.AddTarget(1 << 22); err == nil {
				t.Error("a process that does not exist is a target")
			}
			before, err := cpuTime(two.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			after, err := cpuTime(two.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			two.Process.Kill()
			_ = two.Wait() // it says that the program was killed
			res, err := r.Stop()
			if err != nil {
				t.Fatal(err)
			}
			weights := map[int]time.Duration{}
			for _, s := range res.Profile.Samples {
				weights[res.Profile.Threads[s.Thread].PID] += time.Duration(s.Weight)
			}
			least, most := after-before, two.ProcessState.UserTime()+two.ProcessState.SystemTime()-asked
			t.Logf("%v, %v to %v of CPU time of the one that was added", weights, least, most)
			if weights[one.Process.Pid] == 0 || len(weights) != 2 {
				t.Errorf("samples of %v, not of %d and %d", weights, one.Process.Pid, two.Process.Pid)
			}
			if got := weights[two.Process.Pid]; got < least/2 || got > most*3/2+50*time.Millisecond {
				t.Errorf("the samples of the target that was added stand for %v, it used %v to %v", got, least, most)
			}
			if len(res.Ends) != 1 || res.Ends[0].PID != two.Process.Pid {
				t.Errorf("ends: %+v", res.Ends)
			}
			if err := r.AddTarget(one.Process.Pid); !errors.Is(err, ErrEnded) {
				t.Errorf("a target after the end: %v", err)
			}
		})
	}
}
