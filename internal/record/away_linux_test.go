package record

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// compile compiles a C program in testdata.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return fixture.C(t, filepath.Join("testdata", name+".c"), append([]string{"-g"}, flags...)...)
}

// output redirects what launched programs print to a buffer, and returns a function that returns
// its contents.
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

// recordShares runs testdata/shares.c and records it from its first instruction
// to its end.
func recordShares(t *testing.T, o Options) (*profile.Profile, []known) {
	t.Helper()
	return recordKnown(t, o, compile(t, "shares"), "5")
}

// Time asleep agrees with what the program itself measured, within 2 % of its time for each thread
// and for each function that waits.
func TestOffCPUTruth(t *testing.T) {
	p, list := recordShares(t, Options{Events: []string{"off-cpu"}})
	for _, k := range list {
		if wrong := k.compareSleep(t, p, 0); wrong != "" {
			t.Error(wrong)
		}
	}
	checkSleepers(t, p)
}

// checkSleepers checks what the samples of sleepers contain besides their weight.
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

// Wall time covers all of each thread's life, split by what it did by the kernel's account, and
// off-cpu beside it contains the same sleeps. One of the threads naps so often that much of what
// the kernel charges to it lies before its context switches.
func TestWallTruth(t *testing.T) {
	p, list := recordShares(t, Options{Events: []string{"wall", "off-cpu"}, Hz: 499})
	for _, k := range list {
		if wrong := k.compareWall(t, p) + k.compareSleep(t, p, 1); wrong != "" {
			t.Error(wrong)
		}
	}
	checkSleepers(t, p)
}

// Without BPF wall time is the same, and time on a CPU can be recorded with it. If candid's own
// threads get no CPU, it does not see what happens meanwhile, and that time is reported afterwards:
// on a busy machine there are more attempts.
func TestWallTruthWithoutBPF(t *testing.T) {
	fixture.Attempts(t, 8, func() (wrong string) {
		p, list := recordShares(t, Options{Engine: "suspend", Events: []string{"wall", "cpu"}, Hz: 499})
		for _, k := range list {
			wrong += k.compareWall(t, p)
			if sum := k.amounts(p, 1); off(sum.ran, k.run, k.wall()) > apart || sum.ready+sum.slept > 0 {
				wrong += fmt.Sprintf("%s ran %.1f ms of %.1f, by cpu %.1f; ", k.name, k.run/1e6, k.wall()/1e6, sum.ran/1e6)
			}
		}
		checkSleepers(t, p)
		return wrong
	})
}
