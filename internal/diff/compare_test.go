package diff

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/format/collapsed"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

func frame(name string, kind walk.Kind) profiletest.Frame {
	return profiletest.Frame{Name: name, Kind: kind}
}

func stack(n int, end walk.End, kind walk.Kind, names ...string) profiletest.Stack {
	s := profiletest.Stack{Thread: "main", Count: n, End: end}
	for _, name := range names {
		s.Frames = append(s.Frames, frame(name, kind))
	}
	return s
}

// before and after return 1,000 and 2,000 samples, whose shares are known.
func before() *profile.Profile {
	return profiletest.New([]profiletest.Stack{
		stack(500, walk.EndComplete, walk.KindInterpreted, "main", "a"),
		stack(300, walk.EndComplete, walk.KindC1, "main", "a", "b"),
		stack(100, walk.EndComplete, walk.KindC2, "main", "old"),
		stack(100, walk.EndTruncated, walk.KindC2, "deep"),
	})
}

func after() *profile.Profile {
	return profiletest.New([]profiletest.Stack{
		stack(600, walk.EndComplete, walk.KindC2, "main", "a"),
		stack(1000, walk.EndComplete, walk.KindC2, "main", "a", "b"),
		stack(198, walk.EndComplete, walk.KindC2, "main", "fresh"),
		stack(2, walk.EndComplete, walk.KindC2, "main", "rare"),
		stack(200, walk.EndTruncated, walk.KindC2, "deep"),
	})
}

func compared(t *testing.T, base, new *profile.Profile, how Normalize) *Comparison {
	t.Helper()
	spec, err := filter.Parse(filter.Words{})
	if err != nil {
		t.Fatal(err)
	}
	sides, err := Choose([2]string{"base", "new"}, [2]*profile.Profile{base, new}, spec)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compare(sides[0], sides[1], how)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Pair.Check(); err != nil {
		t.Fatal(err)
	}
	return c
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestCompareIsExact(t *testing.T) {
	c := compared(t, before(), after(), Total)
	want := []struct {
		name        string
		self, total [2]float64
		chance      bool // of self
	}{
		{"a", [2]float64{0.5, 0.3}, [2]float64{0.8, 0.8}, false},
		{"b", [2]float64{0.3, 0.5}, [2]float64{0.3, 0.5}, false},
		{"old", [2]float64{0.1, 0}, [2]float64{0.1, 0}, false},
		{"fresh", [2]float64{0, 0.099}, [2]float64{0, 0.099}, false},
		{"rare", [2]float64{0, 0.001}, [2]float64{0, 0.001}, true},
		{"main", [2]float64{0, 0}, [2]float64{0.9, 0.9}, true},
		{"deep", [2]float64{0.1, 0.1}, [2]float64{0.1, 0.1}, true},
	}
	rows := c.List(false)
	if len(rows) != len(want) {
		t.Fatalf("%d methods, want %d", len(rows), len(want))
	}
	for i, w := range want {
		m := rows[i]
		if c.Funcs[m.Func].Name != w.name {
			t.Errorf("row %d is %s, want %s", i, c.Funcs[m.Func].Name, w.name)
			continue
		}
		for side := range 2 {
			if !near(c.Value(side, m.Self[side]), w.self[side]) || !near(c.Value(side, m.Total[side]), w.total[side]) {
				t.Errorf("%s, side %d: self %v, total %v, want %v, %v", w.name, side, c.Value(side, m.Self[side]), c.Value(side, m.Total[side]), w.self, w.total)
			}
		}
		if !near(c.Change(m.Self), w.self[1]-w.self[0]) || c.WithinChance(m.Self) != w.chance {
			t.Errorf("%s: change %v, chance %g", w.name, c.Change(m.Self), c.Chance(m.Self))
		}
		if m.Kind != walk.KindC2 && w.name != "a" {
			t.Errorf("%s is %v", w.name, m.Kind)
		}
	}
	if first := c.Funcs[c.List(true)[0].Func].Name; first != "b" {
		t.Errorf("by total the largest change is of %s", first)
	}

	// The tree merges frames that differ only in kind, and stacks without their outer part stand
	// under a root of their own.
	nodes := c.Calls()
	got := map[string]Node{}
	for i := range nodes {
		path := ""
		for at := uint32(i); at != 0; at = nodes[at].Parent {
			path = ";" + c.Funcs[nodes[at].Func].Name + path
		}
		got[path] = nodes[i]
	}
	missing := ";" + flame.EndName(walk.EndTruncated)
	for path, totals := range map[string][2]uint64{
		"": {1000, 2000}, ";main": {900, 1800}, ";main;a": {800, 1600}, ";main;a;b": {300, 1000}, ";main;old": {100, 0}, ";main;fresh": {0, 198}, ";main;rare": {0, 2},
		missing: {100, 200}, missing + ";deep": {100, 200},
	} {
		if n, ok := got[path]; !ok || n.Total[0].Samples != totals[0] || n.Total[1].Samples != totals[1] {
			t.Errorf("%q: %+v, want %v", path, n, totals)
		}
	}
	if len(got) != 9 {
		t.Errorf("the tree has %d nodes", len(got))
	}
	callers := c.Callers(regexp.MustCompile("^b$"))
	if len(callers) != 4 || callers[0].Total[0].Samples != 300 || callers[3].Self[1].Samples != 1000 || c.Funcs[callers[3].Func].Name != "main" {
		t.Errorf("callers of b: %+v", callers)
	}
}

func TestNormalize(t *testing.T) {
	base, new := before(), after()
	base.Meta.Duration, new.Meta.Duration = 10*time.Second, 40*time.Second
	ms := float64(time.Millisecond)
	for how, want := range map[Normalize][2]float64{
		Total: {0.3, 0.5}, Time: {30 * ms, 25 * ms}, None: {300 * ms, 1000 * ms},
	} {
		c := compared(t, base, new, how)
		for _, m := range c.Methods {
			if c.Funcs[m.Func].Name == "b" && (!near(c.Value(0, m.Self[0])/want[0], 1) || !near(c.Value(1, m.Self[1])/want[1], 1)) {
				t.Errorf("%s: %v, %v, want %v", how, c.Value(0, m.Self[0]), c.Value(1, m.Self[1]), want)
			}
		}
	}
	// At ten times the rate a sample stands for a tenth of the time: nothing has changed.
	rare := before()
	for i := range rare.Samples {
		rare.Samples[i].Weight *= 2
	}
	rare.Meta.Duration = 20 * time.Second
	c := compared(t, base, rare, Time)
	for _, m := range c.Methods {
		if !near(c.Change(m.Total), 0) || !c.WithinChance(m.Total) || c.Chance(m.Total) < 0.9 {
			t.Errorf("%s changed by %v, chance %g", c.Funcs[m.Func].Name, c.Change(m.Total), c.Chance(m.Total))
		}
	}
	base.Meta.Duration = 0
	for i := range base.Samples {
		base.Samples[i].Time = 0
	}
	sides := [2]Side{{Name: "base", Profile: base}, {Name: "new", Profile: new, Span: time.Second}}
	if _, err := Compare(sides[0], sides[1], Time); !errors.Is(err, ErrIncomparable) || !strings.Contains(err.Error(), "base") {
		t.Error(err)
	}
}

// One heavy sample proves nothing, whatever its share.
func TestChanceOfHeavySamples(t *testing.T) {
	base, new := before(), before()
	new.Samples[0].Weight = 5000 * profiletest.Period
	c := compared(t, base, new, Total)
	for _, m := range c.Methods {
		if !c.WithinChance(m.Self) {
			t.Errorf("%s: change %v is taken for more than chance", c.Funcs[m.Func].Name, c.Change(m.Self))
		}
	}
}

func TestSameTwice(t *testing.T) {
	p := profiletest.Server(2000, 20_000, 30)
	for _, how := range []Normalize{Total, Time, None} {
		c := compared(t, p, p, how)
		for _, m := range c.Methods {
			if c.Change(m.Self) != 0 || c.Change(m.Total) != 0 || !c.WithinChance(m.Self) || !c.WithinChance(m.Total) {
				t.Fatalf("%s: %s changed by %v, %v", how, c.Funcs[m.Func].Name, c.Change(m.Self), c.Change(m.Total))
			}
		}
		for _, n := range c.Calls() {
			if n.Most != 0 {
				t.Fatalf("%s: a node changed: %+v", how, n)
			}
		}
		// As in the report of one recording.
		sel := p.Select(profile.Filter{})
		want := map[string]profile.MethodCount{}
		for _, m := range sel.List() {
			want[sel.Func(m.Method).Name+"\x00"+sel.Func(m.Method).Module] = m
		}
		for _, m := range c.Methods {
			f := c.Funcs[m.Func]
			if w := want[f.Name+"\x00"+f.Module]; m.Self[1] != w.Self || m.Total[0] != w.Total {
				t.Fatalf("%s: %+v, the report has %+v", f.Name, m, w)
			}
		}
		if len(c.Methods) != len(want) {
			t.Errorf("%d methods, the report has %d", len(c.Methods), len(want))
		}
	}
}

func TestFolded(t *testing.T) {
	var b strings.Builder
	if err := compared(t, before(), after(), Total).Folded(&b); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != `main;a 1000 600
main;a;b 600 1000
main;old 200 0
`+flame.EndName(walk.EndTruncated)+`;deep 200 200
main;fresh 0 198
main;rare 0 2
` {
		t.Errorf("\n%s", got)
	}
	b.Reset()
	if err := compared(t, after(), before(), None).Folded(&b); err != nil || !strings.Contains(b.String(), "main;a;b 1000 300\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := compared(t, after(), profiletest.New([]profiletest.Stack{stack(3, 0, 0, "main")}), Total).Folded(&b); err != nil || !strings.Contains(b.String(), "main;rare 0.003 0\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// Names that a JVM generates anew in each run are the same function, whichever tool wrote the file,
// and a file without modules is compared by names.
func TestNamesMerge(t *testing.T) {
	for name, want := range map[string]string{
		"Main$$Lambda$14.run":                              "Main$$Lambda.run",
		"Main$$Lambda$14/0x0000000800c03000.run":           "Main$$Lambda.run",
		"Main$$Lambda/0x0000000800c03000.run":              "Main$$Lambda.run",
		"Main$$Lambda.0x0000000800c03000.run":              "Main$$Lambda.run",
		"jdk.proxy2.$Proxy17.call":                         "jdk.proxy.$Proxy.call",
		"jdk.internal.reflect.GeneratedMethodAccessor7.in": "jdk.internal.reflect.GeneratedMethodAccessor.in",
		"java.util.HashMap.get":                            "java.util.HashMap.get",
		"libc.so.6+0x1234":                                 "libc.so.6+0x1234",
		"github.com/a/b.(*T).Run":                          "github.com/a/b.(*T).Run",
		".0x":                                              ".0x",
	} {
		if got := plain(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	read := func(text string) *profile.Profile {
		p, err := collapsed.Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	c := compared(t, read("main;A$$Lambda$1.run;x 7\nmain;y 3\n"), read("main;A$$Lambda$9.run;x 4\nmain;y 6\n"), Total)
	if len(c.Methods) != 4 {
		t.Errorf("%d methods, want 4", len(c.Methods))
	}
	native := profiletest.New([]profiletest.Stack{{Thread: "t", Count: 10, Frames: []profiletest.Frame{{Name: "main", Module: "/opt/a/bin"}, {Name: "y", Module: "/lib/liby.so"}}}})
	c = compared(t, read("main;y 10\n"), native, Total)
	if len(c.Methods) != 2 || c.Note == "" || c.Event.Name != "samples" || c.All[1].Weight != 10 {
		t.Errorf("%d methods; %q; %+v of %v", len(c.Methods), c.Note, c.All, c.Event)
	}
	// The event of CPU time has many names.
	perf := before()
	perf.Events = []profile.Event{{Name: "cycles:P", Kind: profile.EventCycles, Unit: "count", Period: 1}}
	c = compared(t, perf, after(), Total)
	for _, m := range c.Methods {
		if c.Funcs[m.Func].Name == "b" && (!near(c.Value(0, m.Self[0]), 0.3) || !near(c.Value(1, m.Self[1]), 0.5)) || !strings.Contains(c.Note, "cycles:P") {
			t.Errorf("%q: %+v", c.Note, m)
		}
	}
	// A program may be renamed; modules distinguish only names that one of the two has in several
	// of them.
	in := func(main, y string, more ...string) *profile.Profile {
		frames := []profiletest.Frame{{Name: "main", Module: main}, {Name: "y", Module: y}}
		for _, m := range more {
			frames = append(frames, profiletest.Frame{Name: "y", Module: m})
		}
		return profiletest.New([]profiletest.Stack{{Thread: "t", Count: 10, Frames: frames}})
	}
	if c = compared(t, in("/opt/tool-1", "/lib/liby.so"), in("/opt/tool-2", "/usr/lib/liby.so"), Total); len(c.Methods) != 2 {
		t.Errorf("%d methods, want 2: main and y", len(c.Methods))
	}
	if c = compared(t, in("/opt/tool-1", "/lib/liby.so"), in("/opt/tool-2", "/usr/lib/liby.so", "/lib/libz.so"), Total); len(c.Methods) != 3 {
		t.Errorf("%d methods, want 3: main and two of the name y", len(c.Methods))
	}
}

func TestRefusals(t *testing.T) {
	spec := func(event string) *filter.Spec {
		s, err := filter.Parse(filter.Words{Event: event})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	names := [2]string{"one", "two"}
	p, server := before(), profiletest.Server(500, 2000, 10)
	if _, err := Choose(names, [2]*profile.Profile{p, server}, spec("alloc")); !errors.Is(err, ErrIncomparable) || !strings.Contains(err.Error(), "one has no event") {
		t.Error(err)
	}
	if _, err := Choose(names, [2]*profile.Profile{server, profile.NewBuilder().Profile()}, spec("")); !errors.Is(err, filter.ErrEmpty) || !strings.Contains(err.Error(), "two") {
		t.Error(err)
	}
	alloc := profile.Only(server, 1)
	sides, err := Choose(names, [2]*profile.Profile{p, alloc}, spec(""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compare(sides[0], sides[1], Total); !errors.Is(err, ErrIncomparable) || !strings.Contains(err.Error(), "alloc in bytes") {
		t.Error(err)
	}
	// If there are several events, the first that both have is chosen.
	sides, err = Choose(names, [2]*profile.Profile{server, alloc}, spec(""))
	if err != nil || sides[0].Profile.Events[0].Name != "alloc" || sides[0].All != sides[1].All {
		t.Errorf("%v, %v", sides, err)
	}
}

// The result is the same whether samples are summed up, by weight or not at all, and in any order.
func TestSummedIsTheSame(t *testing.T) {
	heavy := func(p *profile.Profile) *profile.Profile {
		for i := range p.Samples {
			s := &p.Samples[i]
			s.Weight = uint64(i%7)*1_234_567_891 + uint64(i%3)
			s.State = profile.State(i % profile.NumStates)
		}
		return p
	}
	side := func(p *profile.Profile) Side { return Side{Name: "x", Profile: p, Span: 10 * time.Second} }
	told := func(base, new *profile.Profile, how Normalize) string {
		c, err := Compare(side(base), side(new), how)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		fmt.Fprintln(&b, c.All, c.tally)
		for _, m := range c.List(true) {
			fmt.Fprintln(&b, c.Funcs[m.Func].Name, m.Kind, m.Self, m.Total, c.Chance(m.Self), c.Chance(m.Total))
		}
		var lines strings.Builder
		if err := c.Folded(&lines); err != nil {
			t.Fatal(err)
		}
		list := strings.Split(lines.String(), "\n")
		slices.Sort(list)
		fmt.Fprintln(&b, list)
		for _, n := range c.Calls() {
			var children []string
			for _, k := range n.Children {
				children = append(children, c.Funcs[c.Calls()[k].Func].Name)
			}
			fmt.Fprintln(&b, n.Self, n.Total, n.Most, children)
		}
		return b.String()
	}
	for _, weigh := range []func(*profile.Profile) *profile.Profile{func(p *profile.Profile) *profile.Profile { return p }, heavy} {
		for _, how := range []Normalize{Total, Time, None} {
			want := told(weigh(before()), weigh(after()), how)
			if got := told(profile.Weighed(weigh(before())), profile.Weighed(weigh(after())), how); got != want {
				t.Errorf("%s, summed up:\n%s\nwant\n%s", how, got, want)
			}
			if got := told(profile.Weighed(weigh(before())), weigh(after()), how); got != want {
				t.Errorf("%s, one summed up:\n%s\nwant\n%s", how, got, want)
			}
		}
	}
	// Samples that carry the same information whatever they weigh.
	base, new := heavy(before()), heavy(after())
	new.Events[0].Name, new.Events[0].Kind = "cycles", profile.EventCycles
	want := told(base, new, Total)
	if got := told(profile.Weighed(base), profile.Weighed(new), Total); got != want {
		t.Errorf("of two events, summed up:\n%s\nwant\n%s", got, want)
	}
}
