package record

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// compile builds a C program of testdata.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return fixture.C(t, filepath.Join("testdata", name+".c"), append([]string{"-g"}, flags...)...)
}

// output makes what launched programs print go to the buffer that it gives.
func output(t *testing.T) func() string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdout
	os.Stdout = f
	return func() string {
		os.Stdout = old
		f.Close()
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// known is what a thread of testdata/shares.c says of itself, ns.
type known struct {
	name, function          string
	tid                     int
	asleep, wall, run, wait float64
}

func (k known) sleep() float64 { return k.wall - k.run - k.wait }

func parseKnown(t *testing.T, text string) []known {
	t.Helper()
	var list []known
	for line := range strings.Lines(text) {
		var k known
		if _, err := fmt.Sscan(line, &k.name, &k.tid, &k.function, &k.asleep, &k.wall, &k.run, &k.wait); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, k)
	}
	if len(list) != 5 {
		t.Fatalf("%d threads tell of themselves:\n%s", len(list), text)
	}
	return list
}

// amounts sums up an event's weights by thread and state, and by thread for
// stacks with the function. What came after the thread told of itself is left out.
func amounts(p *profile.Profile, event int, tid int, function string) (states map[profile.State]float64, in float64) {
	states = map[profile.State]float64{}
	for i := range p.Samples {
		s := &p.Samples[i]
		if int(s.Event) != event || p.Threads[s.Thread].TID != tid {
			continue
		}
		// Without BPF a wait for a CPU shows where the thread is seen asleep next.
		if calls(p, s.Node, "stay") && (s.State >= profile.StateSleeping || p.Meta.Engine == "bpf") {
			continue
		}
		states[s.State] += float64(s.Weight)
		if calls(p, s.Node, function) {
			in += float64(s.Weight)
		}
	}
	return states, in
}

// calls says whether a function is in a stack.
func calls(p *profile.Profile, node uint32, function string) bool {
	for ; node != profile.RootNode; node = p.Nodes[node].Parent {
		if p.Funcs[p.Frames[p.Nodes[node].Frame].Func].Name == function {
			return true
		}
	}
	return false
}

// recordShares runs testdata/shares.c and records it from its first instruction
// to its end.
func recordShares(t *testing.T, o Options) (*profile.Profile, []known) {
	t.Helper()
	exe := compile(t, "shares")
	out := output(t)
	defer out()
	o.Command = []string{exe, "6"}
	r := run(t, o)
	if _, _, err := r.Wait(); err != nil {
		t.Fatal(err)
	}
	list := parseKnown(t, out())
	if n := r.Profile.Losses.Lost; n > 0 {
		t.Errorf("%d samples lost", n)
	}
	if err := r.Profile.Check(); err != nil {
		t.Fatal(err)
	}
	return r.Profile, list
}

// off says by what part of whole the two differ.
func off(got, want, whole float64) float64 { return math.Abs(got-want) / whole }

// Time asleep is what the program itself measured, within 2 % of the recording
// for each thread and for each function that waits.
func TestOffCPUTruth(t *testing.T) {
	p, list := recordShares(t, Options{Events: []string{"off-cpu"}})
	for _, k := range list {
		states, in := amounts(p, 0, k.tid, k.function)
		slept := states[profile.StateSleeping] + states[profile.StateDisk]
		t.Logf("%-8s slept %.1f ms, %.1f of them in %s; truth %.1f, %.1f", k.name, slept/1e6, in/1e6, k.function, k.sleep()/1e6, k.asleep/1e6)
		if off(slept, k.sleep(), k.wall) > 0.02 {
			t.Errorf("%s slept %.1f ms of %.1f, not %.1f", k.name, k.sleep()/1e6, k.wall/1e6, slept/1e6)
		}
		if off(in, k.asleep, k.wall) > 0.02 {
			t.Errorf("%s slept %.1f ms of %.1f in %s, not %.1f", k.name, k.asleep/1e6, k.wall/1e6, k.function, in/1e6)
		}
		if states[profile.StateRunnable]+states[profile.StateRunning] > 0 {
			t.Errorf("%s: off-cpu has time in which the thread ran or could: %v", k.name, states)
		}
	}
	checkSleepers(t, p)
}

// checkSleepers looks at what the samples of sleepers say besides their weight.
func checkSleepers(t *testing.T, p *profile.Profile) {
	t.Helper()
	calls, inner := map[string]bool{}, map[string]int{}
	for i := range p.Samples {
		s := &p.Samples[i]
		if s.State != profile.StateSleeping {
			continue
		}
		calls[p.Syscalls[s.Syscall]] = true
		if s.Node != profile.RootNode {
			inner[p.Funcs[p.Frames[p.Nodes[s.Node].Frame].Func].Name]++
		}
	}
	for _, want := range []string{"clock_nanosleep", "futex", "read"} {
		if !calls[want] {
			t.Errorf("no thread sleeps in %s: %v", want, calls)
		}
	}
	for name := range inner {
		if strings.Contains(name, "bpf") || strings.HasSuffix(name, "schedule") {
			t.Errorf("a stack begins with %s: %v", name, inner)
		}
	}
	var b bytes.Buffer
	q := p.Quality()
	fmt.Fprintf(&b, "%d stacks: %d complete, %d truncated, %d broken", q.Samples, q.Complete+q.Stitched, q.Truncated, q.Broken)
	if q.Complete+q.Stitched < q.Samples*98/100 {
		t.Error(b.String())
	}
	t.Log(b.String())
}

// Wall time is all of each thread's life, split by what it did as the kernel
// counts it, and off-cpu beside it the same sleeps. One of the threads naps so often
// that much of what the kernel charges to it lies before its switches.
func TestWallTruth(t *testing.T) {
	p, list := recordShares(t, Options{Events: []string{"wall", "off-cpu"}, Hz: 499})
	for _, k := range list {
		slept := checkWall(t, p, k, 0.02)
		again, _ := amounts(p, 1, k.tid, k.function)
		if other := again[profile.StateSleeping] + again[profile.StateDisk]; off(other, slept, k.wall) > 0.02 {
			t.Errorf("%s slept %.1f ms by wall, %.1f by off-cpu", k.name, slept/1e6, other/1e6)
		}
	}
	checkSleepers(t, p)
}

// Without BPF wall time is the same, and time on a CPU can be taken beside it.
func TestWallTruthWithoutBPF(t *testing.T) {
	var p *profile.Profile
	var list []known
	bound := 0.02
	for range 3 {
		p, list = recordShares(t, Options{Engine: "suspend", Events: []string{"wall", "cpu"}, Hz: 499})
		// Where candid's own threads get no CPU it does not see what goes on meanwhile.
		missed := float64(p.Losses.Throttled) * float64(p.Events[0].Period) / float64(runtime.NumCPU())
		if missed < 0.02*float64(p.Meta.Duration) {
			bound = 0.02
			break
		}
		t.Logf("this machine is busy: %.0f ms went by without a sample", missed/1e6)
		bound = 0.2
	}
	for _, k := range list {
		checkWall(t, p, k, bound)
		states, _ := amounts(p, 1, k.tid, k.function)
		if ran := states[profile.StateRunning]; off(ran, k.run, k.wall) > bound || len(states) > 1 {
			t.Errorf("%s ran %.1f ms of %.1f: %v", k.name, k.run/1e6, k.wall/1e6, states)
		}
	}
	checkSleepers(t, p)
}

// checkWall compares the first event, wall, with what a thread says of itself; bound
// is the part of its time that they may differ by. It gives for how long it slept.
func checkWall(t *testing.T, p *profile.Profile, k known, bound float64) float64 {
	t.Helper()
	states, in := amounts(p, 0, k.tid, k.function)
	ran, ready := states[profile.StateRunning], states[profile.StateRunnable]
	slept := states[profile.StateSleeping] + states[profile.StateDisk]
	t.Logf("%-8s %.0f ms: ran %.1f, ready %.1f, slept %.1f; truth %.1f, %.1f, %.1f; in %s %.1f", k.name, (ran+ready+slept)/1e6,
		ran/1e6, ready/1e6, slept/1e6, k.run/1e6, k.wait/1e6, k.sleep()/1e6, k.function, in/1e6)
	for _, c := range []struct {
		what      string
		got, want float64
	}{{"ran", ran, k.run}, {"waited for a CPU", ready, k.wait}, {"slept", slept, k.sleep()}, {"lived", ran + ready + slept, k.wall}} {
		if off(c.got, c.want, k.wall) > bound {
			t.Errorf("%s %s %.1f ms of %.1f, not %.1f", k.name, c.what, c.want/1e6, k.wall/1e6, c.got/1e6)
		}
	}
	return slept
}
