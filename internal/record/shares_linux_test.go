package record

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// known is the account that a thread of testdata/shares.c or workloads/Shares.java gives of itself,
// in ns.
type known struct {
	name, function                     string
	tid                                int
	asleep, ran, begin, end, run, wait float64
}

func (k known) wall() float64  { return k.end - k.begin }
func (k known) sleep() float64 { return k.wall() - k.run - k.wait }

func parseKnown(t *testing.T, text string) []known {
	t.Helper()
	var list []known
	for line := range strings.Lines(text) {
		var k known
		if _, err := fmt.Sscan(line, &k.name, &k.tid, &k.function, &k.asleep, &k.ran, &k.begin, &k.end, &k.run, &k.wait); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, k)
	}
	if len(list) < 5 {
		t.Fatalf("%d threads tell of themselves:\n%s", len(list), text)
	}
	return list
}

// shares is what a profile contains for a thread, in ns.
type shares struct {
	ran, ready, slept float64 // in total
	busy, asleep      float64 // ran and slept in its function
	stood             float64 // slept elsewhere, in no system call: it was stopped by candid
	edge              float64 // of samples that reach beyond the account: may belong to it or not
}

// amounts sums up an event's weights for the time that a thread's account covers. When samples were
// taken decides what belongs to it, not their stacks. A weight stands for the time before the
// sample: one that reaches beyond the account is cut.
func (k known) amounts(p *profile.Profile, event int) (sum shares) {
	mono, day := moment()
	zero := float64(mono) - float64(day.Sub(p.Meta.Start))
	for i := range p.Samples {
		s := &p.Samples[i]
		at := zero + float64(s.Time)
		weight := float64(s.Weight)
		within := min(at, k.end) - max(at-weight, k.begin)
		if int(s.Event) != event || p.Threads[s.Thread].TID != k.tid || min(weight, within) <= 0 {
			continue
		}
		if within < weight {
			sum.edge += min(within, weight-within)
			weight = within
		}
		all, in := &sum.slept, &sum.asleep
		switch s.State {
		case profile.StateRunning:
			all, in = &sum.ran, &sum.busy
		case profile.StateRunnable:
			all, in = &sum.ready, nil
		}
		*all += weight
		switch {
		case in == nil:
		case calls(p, s.Node, k.function):
			*in += weight
		case s.State == profile.StateSleeping && p.Syscalls[s.Syscall] == "":
			sum.stood += weight
		}
	}
	return sum
}

// calls reports whether a function is in a stack.
func calls(p *profile.Profile, node uint32, function string) bool {
	for ; node != profile.RootNode; node = p.Nodes[node].Parent {
		if p.Funcs[p.Frames[p.Nodes[node].Frame].Func].Name == function {
			return true
		}
	}
	return false
}

// recordKnown records a program in which at least five threads give an account. They begin when the
// first sample has come: on a busy machine sampling may begin long after the program.
func recordKnown(t *testing.T, o Options, command ...string) (*profile.Profile, []known) {
	t.Helper()
	out := output(t)
	defer out()
	in, begin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func(old *os.File) {
		os.Stdin = old
		in.Close()
		begin.Close()
	}(os.Stdin)
	os.Stdin = in
	var once sync.Once
	o.walked = func(*walk.Walker, *capture.Snapshot, walk.Memory, *walk.Stack) {
		once.Do(func() { _, _ = begin.Write([]byte{'\n'}) })
	}
	o.Command = command
	r := run(t, o)
	if code, _, err := r.Wait(); err != nil || code != 0 {
		t.Fatalf("it ends with %d, %v: %s", code, err, out())
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

// apart is the fraction of a thread's time by which candid's and its own account may differ.
const apart = 0.02

// off returns by what fraction of whole the two differ.
func off(got, want, whole float64) float64 { return math.Abs(got-want) / whole }

// compareWall compares the first event, wall, with a thread's own account. It returns what is
// wrong.
func (k known) compareWall(t *testing.T, p *profile.Profile) string {
	t.Helper()
	sum := k.amounts(p, 0)
	// A thread may be stopped between reading its clocks and its function.
	list := []compared{
		{"ran", sum.ran, k.run, sum.edge}, {"waited for a CPU", sum.ready, k.wait, sum.edge}, {"slept", sum.slept, k.sleep(), sum.edge},
		{"lived", sum.ran + sum.ready + sum.slept, k.wall(), sum.edge}, {"slept in " + k.function, sum.asleep, k.asleep, sum.edge + sum.stood},
	}
	if k.ran > k.run/2 {
		// For a function that only waits, the time that it ran is mostly the cost of taking the
		// account.
		list = append(list, compared{"ran in " + k.function, sum.busy, k.ran, sum.edge})
	}
	return k.compare(t, p, 0, list)
}

// compareSleep does the same for an event of sleeps only.
func (k known) compareSleep(t *testing.T, p *profile.Profile, event int) string {
	t.Helper()
	sum := k.amounts(p, event)
	return k.compare(t, p, event, []compared{
		{"slept", sum.slept, k.sleep(), 0}, {"slept in " + k.function, sum.asleep, k.asleep, 0}, {"ran or could", sum.ran + sum.ready, 0, 0},
	})
}

// compared is something that a thread did, in ns by candid's account and by its own, and by how
// much they may differ in addition.
type compared struct {
	what           string
	got, want, may float64
}

func (k known) compare(t *testing.T, p *profile.Profile, event int, list []compared) (wrong string) {
	t.Helper()
	line := fmt.Sprintf("%s of %s, %.1f ms:", p.Events[event].Name, k.name, k.wall()/1e6)
	for _, c := range list {
		line += fmt.Sprintf(" %s %.1f (%.1f", c.what, c.got/1e6, c.want/1e6)
		if c.may > 0 {
			line += fmt.Sprintf(" ± %.1f", c.may/1e6)
		}
		line += ")"
		if math.Abs(c.got-c.want) > apart*k.wall()+c.may {
			wrong += fmt.Sprintf("%s of %s: %s for %.1f ms of %.1f, by itself %.1f; ", p.Events[event].Name, k.name, c.what, c.got/1e6, k.wall()/1e6, c.want/1e6)
		}
	}
	t.Log(line)
	return wrong
}
