package profile_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

type row struct{ self, total uint64 }

// truth computes the method list directly from the stacks that keep accepts.
func truth(keep func(profiletest.Stack) bool, hide profile.KindSet) (map[string]row, uint64) {
	rows := map[string]row{}
	all := uint64(0)
	for _, s := range profiletest.JavaStacks() {
		if !keep(s) {
			continue
		}
		n := uint64(s.Count)
		all += n
		seen := map[string]bool{}
		leaf := ""
		for _, f := range s.Frames {
			if hide.Has(f.Kind) {
				continue
			}
			leaf = f.Name
			if r := rows[f.Name]; !seen[f.Name] {
				seen[f.Name] = true
				r.total += n
				rows[f.Name] = r
			}
		}
		if leaf != "" {
			r := rows[leaf]
			r.self += n
			rows[leaf] = r
		}
	}
	return rows, all
}

func has(s profiletest.Stack, part string) bool {
	return slices.ContainsFunc(s.Frames, func(f profiletest.Frame) bool { return strings.Contains(f.Name, part) })
}

func TestMethodListAgainstTruth(t *testing.T) {
	p := profiletest.Java()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	kernel := profile.Kinds(walk.KindKernel, walk.KindStub)
	for _, c := range []struct {
		name   string
		filter profile.Filter
		keep   func(profiletest.Stack) bool
	}{
		{"all", profile.Filter{}, func(profiletest.Stack) bool { return true }},
		{"thread kind", profile.Filter{ThreadKinds: []string{"gc", "compiler"}}, func(s profiletest.Stack) bool { return s.Thread == "GC Thread#0" || s.Thread == "C2 CompilerThread0" }},
		{"thread", profile.Filter{Thread: regexp.MustCompile("^GC")}, func(s profiletest.Stack) bool { return s.Thread == "GC Thread#0" }},
		{"focus", profile.Filter{Focus: regexp.MustCompile("HashMap")}, func(s profiletest.Stack) bool { return has(s, "HashMap") }},
		{"ignore", profile.Filter{Ignore: regexp.MustCompile("HashMap")}, func(s profiletest.Stack) bool { return !has(s, "HashMap") }},
		{"hide", profile.Filter{Hide: kernel}, func(profiletest.Stack) bool { return true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			sel := p.Select(c.filter)
			want, chosen := truth(c.keep, c.filter.Hide)
			if sel.All.Samples != 10000 || sel.Chosen.Samples != chosen || sel.Chosen.Weight != chosen*profiletest.Period {
				t.Errorf("all %v, chosen %v, want %d", sel.All, sel.Chosen, chosen)
			}
			got := map[string]row{}
			for _, m := range sel.List() {
				if m.Self.Weight != m.Self.Samples*profiletest.Period || m.Total.Weight != m.Total.Samples*profiletest.Period {
					t.Errorf("weights do not fit samples: %+v", m)
				}
				kinds := uint64(0)
				for _, n := range m.Kinds {
					kinds += n
				}
				if kinds != m.Total.Samples {
					t.Errorf("%s: kinds are of %d samples, total %d", sel.Func(m.Method).Name, kinds, m.Total.Samples)
				}
				got[sel.Func(m.Method).Name] = row{m.Self.Samples, m.Total.Samples}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("\n got %v\nwant %v", got, want)
			}
			part := profile.Apply(p, c.filter)
			if err := part.Check(); err != nil {
				t.Error(err)
			}
			got = map[string]row{}
			again := part.Select(profile.Filter{})
			for _, m := range again.List() {
				got[again.Func(m.Method).Name] = row{m.Self.Samples, m.Total.Samples}
			}
			if !reflect.DeepEqual(got, want) || again.All.Samples != chosen || len(p.Samples) != 10000 {
				t.Errorf("applied\n got %v\nwant %v", got, want)
			}
			tree := sel.Calls()
			if tree.Nodes[0].Total != sel.Chosen {
				t.Errorf("the tree holds %v of %v", tree.Nodes[0].Total, sel.Chosen)
			}
		})
	}
}

func TestTimeRange(t *testing.T) {
	sel := profiletest.Java().Select(profile.Filter{From: time.Second, To: 3 * time.Second})
	if sel.Chosen.Samples != 2000 { // one each ms, from 1 ms on
		t.Errorf("%d samples in two seconds", sel.Chosen.Samples)
	}
}

func TestKindsOfRecursiveMethod(t *testing.T) {
	c2 := profiletest.Frame{Name: "f", Kind: walk.KindC2}
	interp := profiletest.Frame{Name: "f", Kind: walk.KindInterpreted}
	g := profiletest.Frame{Name: "g", Kind: walk.KindC1}
	p := profiletest.New([]profiletest.Stack{
		{Thread: "a", Count: 5, Frames: []profiletest.Frame{interp, g, c2}},
		{Thread: "a", Count: 2, Frames: []profiletest.Frame{interp, g}},
	})
	for _, m := range p.Select(profile.Filter{}).List() {
		if m.Total.Samples != 7 {
			t.Errorf("total %v", m.Total)
		}
		if m.Kinds[walk.KindC2] > 0 && (m.Kinds[walk.KindC2] != 5 || m.Kinds[walk.KindInterpreted] != 2 || m.Kind() != walk.KindC2) {
			t.Errorf("kinds %v", m.Kinds)
		}
	}
}

func TestCallTreeAndHottest(t *testing.T) {
	sel := profiletest.Java().Select(profile.Filter{Thread: regexp.MustCompile("http")})
	tree := sel.Calls()
	hot := tree.Hottest(2)
	var path []string
	for _, m := range tree.Path(hot[0], nil) {
		path = append(path, sel.Func(m).Name)
	}
	want := []string{"start_thread", "thread_native_entry", "JavaThread::thread_main_inner", "call_stub", "java.lang.Thread.run", "com.example.shop.Worker.loop",
		"com.example.shop.Handler.handle", "com.example.shop.Index.search", "com.example.shop.Index.score", "java.util.HashMap.get", "java.util.HashMap.hash"}
	if !slices.Equal(path, want) || tree.Nodes[hot[0]].Self.Samples != 2400 {
		t.Errorf("hottest path %v, %v", path, tree.Nodes[hot[0]].Self)
	}
	for i, n := range tree.Nodes {
		sum := n.Self
		for j, c := range n.Children {
			sum.Add(tree.Nodes[c].Total)
			if tree.Nodes[c].Parent != uint32(i) || j > 0 && tree.Nodes[c].Total.Weight > tree.Nodes[n.Children[j-1]].Total.Weight {
				t.Errorf("node %d: children out of order", i)
			}
		}
		if sum != n.Total {
			t.Errorf("node %d: total %v, its parts are %v", i, n.Total, sum)
		}
	}
}

func TestCallersCountAStackOnce(t *testing.T) {
	sel := profiletest.Java().Select(profile.Filter{})
	tree := sel.Callers(regexp.MustCompile(`Rules\.evaluate$`))
	if tree.Nodes[0].Total.Samples != 1500 || len(tree.Nodes[0].Children) != 1 {
		t.Fatalf("root %+v", tree.Nodes[0])
	}
	// evaluate ← evaluate ← (evaluate 1200 | handle 300)
	n := tree.Nodes[tree.Nodes[0].Children[0]]
	n = tree.Nodes[n.Children[0]]
	if n.Total.Samples != 1500 || len(n.Children) != 2 || tree.Nodes[n.Children[0]].Total.Samples != 1200 ||
		sel.Func(tree.Nodes[n.Children[1]].Method).Name != "com.example.shop.Handler.handle" || tree.Nodes[n.Children[1]].Total.Samples != 300 {
		t.Errorf("second caller %+v", n)
	}
}

func TestThreadsAgainstKernel(t *testing.T) {
	p := profiletest.Java()
	for _, r := range p.Select(profile.Filter{}).ByThread() {
		if r.Disagrees || r.KernelShare < 0 {
			t.Errorf("%+v", r)
		}
	}
	p.Threads[0].KernelCPU /= 2 // the profile saw it run twice as long as it ran
	p.Threads = append(p.Threads, profile.Thread{Name: "unseen", KernelCPU: 500 * profiletest.Period})
	rows := p.Select(profile.Filter{}).ByThread()
	if !rows[0].Disagrees {
		t.Errorf("%+v", rows[0])
	}
	if last := rows[len(rows)-1]; last.Samples.Samples != 0 || !last.Disagrees {
		t.Errorf("%+v", last)
	}
	for _, r := range p.Select(profile.Filter{Focus: regexp.MustCompile("HashMap")}).ByThread() {
		if r.KernelShare >= 0 || r.Quality.Samples != r.Samples.Samples {
			t.Errorf("a part of a thread was compared with all of it: %+v", r)
		}
	}
}

func TestQuality(t *testing.T) {
	q := profiletest.Java().Quality()
	if q.Complete != 8800 || q.Stitched != 700 || q.Heuristic != 400 || q.Truncated != 60 || q.Broken != 40 || q.MostFrequentEnd() != walk.EndBadPC {
		t.Errorf("%+v", q)
	}
}

func TestCheckFindsBadIndices(t *testing.T) {
	for name, spoil := range map[string]func(p *profile.Profile){
		"no root": func(p *profile.Profile) { p.Nodes = nil },
		"func":    func(p *profile.Profile) { p.Frames[3].Func = 1 << 20 },
		"kind":    func(p *profile.Profile) { p.Frames[3].Kind = walk.NumKinds },
		"loop":    func(p *profile.Profile) { p.Nodes[5].Parent = 5 },
		"frame":   func(p *profile.Profile) { p.Nodes[5].Frame = uint32(len(p.Frames)) },
		"node":    func(p *profile.Profile) { p.Samples[7].Node = uint32(len(p.Nodes)) },
		"thread":  func(p *profile.Profile) { p.Samples[7].Thread = 99 },
		"event":   func(p *profile.Profile) { p.Samples[7].Event = 1 },
		"end":     func(p *profile.Profile) { p.Samples[7].End = walk.NumEnds },
		"state":   func(p *profile.Profile) { p.Samples[7].State = 77 },
	} {
		p := profiletest.Java()
		spoil(p)
		if p.Check() == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// BenchmarkSelect computes the method list of 10,000 samples.
func BenchmarkSelect(b *testing.B) {
	p := profiletest.Java()
	b.ReportAllocs()
	for b.Loop() {
		p.Select(profile.Filter{}).List()
	}
}
