package live

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/walk"
)

// play returns samples of a made-up program: some methods that call each other and themselves, as
// several kinds of code, in several threads.
func play(seed uint64, n int, length time.Duration) (*profile.Builder, []profile.Sample) {
	r := rand.New(rand.NewPCG(seed, 1))
	b := profile.NewBuilder()
	b.AddProcess(profile.Process{PID: 7, Command: "play"})
	kinds := []walk.Kind{walk.KindNative, walk.KindInterpreted, walk.KindC1, walk.KindC2, walk.KindInlined, walk.KindKernel}
	frame := func() uint32 {
		i := int(r.ExpFloat64()*6) % 40
		f := b.Func(profile.Func{Name: fmt.Sprintf("m%d", i), Module: []string{"", "lib.so"}[i%2], Signature: fmt.Sprint(r.IntN(2))})
		return b.Frame(profile.Frame{Func: f, Line: int32(r.IntN(3)), Kind: kinds[r.IntN(len(kinds))]})
	}
	var samples []profile.Sample
	for i := range n {
		node := uint32(profile.RootNode)
		for range r.IntN(12) {
			node = b.Node(node, frame())
		}
		tid := r.IntN(5)
		samples = append(samples, profile.Sample{
			Time: uint64(length) * uint64(i) / uint64(n), Weight: uint64(1e6 + r.IntN(1e6)), Node: node,
			Thread: b.Thread(7, tid, fmt.Sprint("thread ", tid)),
			End:    walk.End(r.IntN(3)), Flags: profile.SampleFlags(r.IntN(4)),
		})
	}
	return b, samples
}

// feed passes samples to a model as a recording does, with a batch each 300 ms.
func feed(m *Model, b *profile.Builder, samples []profile.Sample) {
	batch := time.Duration(0)
	for _, s := range samples {
		for time.Duration(s.Time) > batch {
			m.Batch(b, record.Progress{Elapsed: batch, OwnCPU: batch / 100})
			batch += 300 * time.Millisecond
		}
		m.Sample(b, s)
	}
	last := time.Duration(samples[len(samples)-1].Time) + 1
	m.Batch(b, record.Progress{Elapsed: last, Stats: capture.Stats{Lost: 3}, OwnCPU: last / 100})
}

// whole returns the profile of the same samples.
func whole(b *profile.Builder, samples []profile.Sample) *profile.Profile {
	p := b.Profile()
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds"}}
	p.Samples = samples
	return p
}

// same compares rows with the method list of a profile.
func same(t *testing.T, what string, rows []Row, of func(*Row) (self, total profile.Count), s *profile.Selection) {
	t.Helper()
	got := map[Method][2]profile.Count{}
	for i := range rows {
		if self, total := of(&rows[i]); total.Samples > 0 {
			got[rows[i].Method] = [2]profile.Count{self, total}
		}
	}
	list := s.List()
	if len(list) != len(got) {
		t.Errorf("%s: %d methods, want %d", what, len(got), len(list))
	}
	for _, l := range list {
		f := s.Func(l.Method)
		if g := got[Method{f.Name, f.Module}]; g != [2]profile.Count{l.Self, l.Total} {
			t.Errorf("%s: %s: self and total %v, want %v %v", what, f.Name, g, l.Self, l.Total)
		}
	}
}

func recent(r *Row) (profile.Count, profile.Count) { return r.Self, r.Total }
func since(r *Row) (profile.Count, profile.Count)  { return r.SinceSelf, r.SinceTotal }

// The tables are those of a report of the same samples, in every window and since the start,
// whatever had to be dropped to save memory.
func TestSameAsReport(t *testing.T) {
	const length = 150 * time.Second
	for name, l := range map[string]limits{
		"default":             defaultLimits,
		"stacks are packed":   {entries: 1 << 13, nodes: 150_000, faces: 1 << 16, threads: 1, name: 100},
		"no room for stacks":  {entries: 5, nodes: 1 << 20, faces: 1 << 16, threads: 3, name: 100},
		"no room for callers": {entries: 1 << 13, nodes: 2, faces: 1 << 16, threads: 3, name: 100},
	} {
		t.Run(name, func(t *testing.T) {
			b, samples := play(3, 20000, length)
			m := New()
			m.limits = l
			feed(m, b, samples)
			p := whole(b, samples)
			if l.nodes == 150_000 && m.packed == 0 {
				t.Error("the stacks were not packed")
			}
			for _, w := range []time.Duration{time.Second, 10 * time.Second, MaxWindow} {
				tab := m.Table(Query{Window: w, Threads: true})
				if tab.Window < w-Interval || tab.Window > w+Interval {
					t.Errorf("a window of %v covers %v", w, tab.Window)
				}
				s := p.Select(profile.Filter{From: tab.Elapsed - tab.Window})
				same(t, w.String(), tab.Rows, recent, s)
				same(t, "since the start", tab.Rows, since, p.Select(profile.Filter{}))
				if tab.Recent.Count != s.Chosen || tab.Recent.Quality != s.Quality {
					t.Errorf("%v: %+v, want %+v %+v", w, tab.Recent, s.Chosen, s.Quality)
				}
				if tab.Since.Count != s.All || tab.Since.Lost != 3 || tab.Recent.Lost != 3 {
					t.Errorf("since the start %+v", tab.Since)
				}
				for _, th := range tab.Threads {
					i := slices.IndexFunc(p.Threads, func(o profile.Thread) bool { return o.TID == th.TID })
					if th.Recent != s.Threads[i] || th.Name != p.Threads[i].Name {
						t.Errorf("thread %+v, want %+v", th, s.Threads[i])
					}
				}
				if own := tab.Recent.Own.Seconds() / tab.Window.Seconds(); own < 0.009 || own > 0.013 {
					t.Errorf("own CPU %.2f %% of %v", own*100, tab.Window)
				}
			}
			tab := m.Table(Query{Window: time.Second})
			if want := l.entries == 5 || l.nodes == 2; (tab.Since.Unkept > 0) != want {
				t.Errorf("%d samples without callers", tab.Since.Unkept)
			}
			if len(tab.Load) != 60 {
				t.Errorf("%d intervals", len(tab.Load))
			}
			for i, got := range tab.Load {
				from := 149*time.Second - 60*time.Second + time.Duration(i)*Interval
				if want := p.Select(profile.Filter{From: from, To: from + Interval}).Chosen.Weight; got != want {
					t.Errorf("interval %d has %d, want %d", i, got, want)
				}
			}
		})
	}
}

// One thread's methods are those of a report of that thread.
func TestOneThread(t *testing.T) {
	b, samples := play(5, 4000, 8*time.Second)
	m := New()
	feed(m, b, samples)
	p := whole(b, samples)
	for i, th := range p.Threads {
		one := uint32(i)
		tab := m.Table(Query{Window: 20 * time.Second, Thread: &ThreadID{th.PID, th.TID}})
		s := p.Select(profile.Filter{OneThread: &one})
		same(t, th.Name, tab.Rows, recent, s)
		if tab.Shown != s.Chosen {
			t.Errorf("%s: %v shown, want %v", th.Name, tab.Shown, s.Chosen)
		}
	}
	if tab := m.Table(Query{Window: MaxWindow, Thread: &ThreadID{1, 1}}); len(tab.Rows) != 0 {
		t.Errorf("a thread that is not there has %d methods", len(tab.Rows))
	}
}

// Callers add up to the method's total and are those of a report, also in a copy that was made
// before further samples.
func TestCallers(t *testing.T) {
	b, samples := play(9, 6000, 8*time.Second)
	m := New()
	m.limits.nodes = 100_000
	feed(m, b, samples)
	p := whole(b, samples)
	frozen := m.Clone()
	more, further := play(10, 60000, 80*time.Second)
	feed(m, more, further)
	for _, name := range []string{"m0", "m1", "m5"} {
		s := p.Select(profile.Filter{})
		tree := s.Callers(regexp.MustCompile("^" + name + "$"))
		method := Method{name, map[bool]string{true: "", false: "lib.so"}[name == "m0"]}
		open := &Open{Below: map[Method]*Open{{"m2", ""}: {}}}
		got := frozen.Table(Query{Window: MaxWindow, Open: map[Method]*Open{method: open}}).Callers[method]
		var check func(c *Caller, n uint32, depth int)
		check = func(c *Caller, n uint32, depth int) {
			node := tree.Nodes[n]
			if c.Count != node.Total {
				t.Errorf("%s: %s at depth %d has %v, want %v", name, c.Name, depth, c.Count, node.Total)
			}
			if len(c.Children) == 0 {
				if c.More != (len(node.Children) > 0) {
					t.Errorf("%s: %s at depth %d: more is %v of %d", name, c.Name, depth, c.More, len(node.Children))
				}
				return
			}
			if len(c.Children) != len(node.Children) {
				t.Fatalf("%s: %s at depth %d has %d callers, want %d", name, c.Name, depth, len(c.Children), len(node.Children))
			}
			for i := 1; i < len(c.Children); i++ {
				if c.Children[i].Count.Weight > c.Children[i-1].Count.Weight {
					t.Errorf("%s: callers are not in order", name)
				}
			}
			for _, child := range c.Children {
				for _, k := range node.Children {
					if f := s.Func(tree.Nodes[k].Method); f.Name == child.Name && f.Module == child.Module {
						check(child, k, depth+1)
					}
				}
			}
		}
		if len(got.Children) < 3 {
			t.Fatalf("%s has %d callers", name, len(got.Children))
		}
		check(got, tree.Nodes[profile.RootNode].Children[0], 0)
		if i := slices.IndexFunc(got.Children, func(c *Caller) bool { return c.Name == "m2" }); i < 0 || len(got.Children[i].Children) == 0 {
			t.Errorf("%s: its caller m2 is not opened", name)
		}
		if shut := frozen.Table(Query{Window: MaxWindow, Open: map[Method]*Open{method: nil}}).Callers[method]; len(shut.Children) != 0 || !shut.More {
			t.Errorf("%s is open: %+v", name, shut)
		}
	}
	same(t, "copy", frozen.Table(Query{Window: MaxWindow}).Rows, recent, p.Select(profile.Filter{}))
}

// A straight line of callers opens at once, for some steps.
func TestStraightCallers(t *testing.T) {
	b := profile.NewBuilder()
	node := uint32(profile.RootNode)
	for i := range 30 {
		f := b.Func(profile.Func{Name: fmt.Sprintf("f%d", i)})
		node = b.Node(node, b.Frame(profile.Frame{Func: f, Kind: walk.KindNative}))
	}
	m := New()
	m.Sample(b, profile.Sample{Node: node, Weight: 1, Thread: b.Thread(1, 1, "t")})
	method := Method{Name: "f29"}
	c := m.Table(Query{Window: MaxWindow, Open: map[Method]*Open{method: {}}}).Callers[method]
	depth := 0
	for ; len(c.Children) == 1; depth++ {
		c = c.Children[0]
	}
	if depth != straight+1 || !c.More {
		t.Errorf("%d steps, more: %v", depth, c.More)
	}
}

// A recording that restarts its tables goes on with the same methods, stacks and threads; one with
// new names all the time stays small.
func TestTablesAreBounded(t *testing.T) {
	for _, faces := range []int{500, 2500} {
		t.Run(fmt.Sprint(faces), func(t *testing.T) { testBounded(t, faces) })
	}
}

func testBounded(t *testing.T, faces int) {
	m := New()
	m.limits = limits{entries: 1000, nodes: 20000, faces: faces, threads: 100, name: 50}
	var self profile.Count
	for round := range 200 {
		b := profile.NewBuilder()
		for i := range 100 {
			steady := b.Func(profile.Func{Name: "steady"})
			passing := b.Func(profile.Func{Name: fmt.Sprintf("%s passing %d.%d", string(make([]byte, 100)), round, i)})
			node := b.Node(b.Node(profile.RootNode, b.Frame(profile.Frame{Func: steady, Kind: walk.KindC2})), b.Frame(profile.Frame{Func: passing, Kind: walk.KindC1}))
			at := uint64(round)*1e9 + uint64(i)*1e7
			m.Sample(b, profile.Sample{Time: at, Weight: 10, Node: node, Thread: b.Thread(1, 2, "long-lived")})
			m.Sample(b, profile.Sample{Time: at, Weight: 10, Node: node, Thread: b.Thread(1, 1000+round*100+i, "short-lived")})
			self.Add(profile.Count{Samples: 2, Weight: 20})
		}
		m.Batch(b, record.Progress{Elapsed: time.Duration(round)*time.Second + 999*time.Millisecond})
	}
	tab := m.Table(Query{Window: MaxWindow, Threads: true})
	// The ring itself holds 64 s of 101 threads each.
	if len(m.faces) > 4*faces || len(m.methods) > 4*faces || m.trie.Len() > 20000 || len(m.threads) > 13000 || len(m.tids) > 13000 {
		t.Errorf("%d faces, %d methods, %d nodes, %d threads, %d numbers", len(m.faces), len(m.methods), m.trie.Len(), len(m.threads), len(m.tids))
	}
	had := tab.Forgotten
	for i := range tab.Rows {
		had.Add(tab.Rows[i].SinceSelf)
		if r := &tab.Rows[i]; r.Name == "steady" && (r.SinceTotal != self || r.Kind != walk.KindC2) {
			t.Errorf("the method that was always there had %v as %v, want %v", r.SinceTotal, r.Kind, self)
		}
		if len(tab.Rows[i].Name) > 60 {
			t.Errorf("a name of %d bytes", len(tab.Rows[i].Name))
		}
	}
	if i := slices.IndexFunc(tab.Rows, func(r Row) bool { return r.Method == tooMany }); (i < 0) != (faces == 2500) {
		t.Errorf("some had no room: %v", i >= 0)
	}
	if had != self || tab.Forgotten.Samples == 0 || tab.Since.Count != self {
		t.Errorf("all that methods had, also forgotten ones (%v), is %v of %v", tab.Forgotten, had, self)
	}
	i := slices.IndexFunc(tab.Threads, func(r ThreadRow) bool { return r.TID == 2 })
	if i < 0 || tab.Threads[i].Since.Samples != 200*100 {
		t.Errorf("the thread that was always there: %+v", tab.Threads[max(i, 0)])
	}
}

// A thread that gets the number of an earlier one is another thread.
func TestReusedNumber(t *testing.T) {
	m := New()
	b := profile.NewBuilder()
	m.Sample(b, profile.Sample{Thread: b.Thread(1, 5, "first"), Weight: 1})
	m.Sample(b, profile.Sample{Thread: b.NewThread(1, 5, "second"), Weight: 2})
	m.Batch(b, record.Progress{Elapsed: time.Millisecond})
	tab := m.Table(Query{Window: MaxWindow, Threads: true})
	if len(tab.Threads) != 2 || tab.Threads[0].Name != "first" || tab.Threads[1].Recent.Weight != 2 {
		t.Errorf("%+v", tab.Threads)
	}
}

// A target that does nothing for long leaves an empty window.
func TestIdle(t *testing.T) {
	m := New()
	b, samples := play(1, 100, time.Second)
	feed(m, b, samples)
	m.Batch(b, record.Progress{Elapsed: 10 * time.Minute})
	tab := m.Table(Query{Window: MaxWindow, Threads: true})
	if tab.Recent.Count.Samples != 0 || tab.Since.Count.Samples != 100 || slices.Max(tab.Load) != 0 {
		t.Errorf("recent %v, since %v, load %v", tab.Recent.Count, tab.Since.Count, tab.Load)
	}
	same(t, "since the start", tab.Rows, since, whole(b, samples).Select(profile.Filter{}))
}

func TestBeforeTheFirstSample(t *testing.T) {
	tab := New().Table(Query{Window: MaxWindow, Threads: true, Open: map[Method]*Open{{Name: "x"}: {}}})
	if len(tab.Rows) != 0 || len(tab.Load) != 0 {
		t.Errorf("%+v", tab)
	}
}

// Queries may run while samples are added.
func TestConcurrent(t *testing.T) {
	m := New()
	b, samples := play(2, 20000, 20*time.Second)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			c := m.Clone()
			c.Table(Query{Window: MaxWindow, Threads: true, Open: map[Method]*Open{{Name: "m0"}: {}}})
			m.Table(Query{Window: time.Second, Thread: &ThreadID{7, 1}})
		}
	})
	feed(m, b, samples)
	close(stop)
	wg.Wait()
	same(t, "all", m.Table(Query{Window: MaxWindow}).Rows, recent, whole(b, samples).Select(profile.Filter{}))
}

func BenchmarkSample(b *testing.B) {
	bld, samples := play(2, 20000, 60*time.Second)
	m := New()
	feed(m, bld, samples)
	s := samples[len(samples)-1]
	b.ReportAllocs()
	for b.Loop() {
		m.Sample(bld, s)
	}
}

func BenchmarkTable(b *testing.B) {
	bld, samples := play(2, 20000, 60*time.Second)
	m := New()
	feed(m, bld, samples)
	b.ReportAllocs()
	for b.Loop() {
		m.Table(Query{Window: MaxWindow})
	}
}

// A sample of a long sleep counts for the time before it, in which the thread slept.
func TestLongSleeps(t *testing.T) {
	m := New()
	m.Begin(record.Begun{Events: []profile.Event{{Name: "wall", Kind: profile.EventWall, Unit: "nanoseconds"}}})
	b := profile.NewBuilder()
	node := b.Node(profile.RootNode, b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "sleep"})}))
	th := b.Thread(1, 2, "t")
	for i := range uint64(5) { // shorter ones before
		m.Sample(b, profile.Sample{Time: i*1e9 + 1, Weight: 1e8, Node: node, Thread: th, State: profile.StateSleeping})
	}
	m.Batch(b, record.Progress{Elapsed: 12 * time.Second})
	m.Sample(b, profile.Sample{Time: 12.25e9, Weight: 7.75e9, Node: node, Thread: th, State: profile.StateSleeping})
	m.Batch(b, record.Progress{Elapsed: 12500 * time.Millisecond})
	tab := m.Table(Query{Window: MaxWindow, Threads: true})
	want := []uint64{1e8, 1e8, 1e8, 1e8, 6e8, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9}
	if !slices.Equal(tab.Load, want) || !slices.Equal(tab.Threads[0].Load, want) {
		t.Errorf("load %v and %v, want %v", tab.Load, tab.Threads[0].Load, want)
	}
	if w := uint64(8.25e9); tab.Rows[0].SinceSelf != (profile.Count{Samples: 6, Weight: w}) || tab.Since.Count.Weight != w || tab.Recent.States[profile.StateSleeping] != w || tab.Recent.Quality.Samples != 6 {
		t.Errorf("%+v %+v", tab.Rows[0], tab.Since)
	}
	if tab = m.Table(Query{Window: 2 * time.Second}); tab.Rows[0].Self.Weight != 2.25e9 || tab.Recent.Count.Weight != 2.25e9 {
		t.Errorf("of the last two seconds %v, %v", tab.Rows[0].Self, tab.Recent.Count)
	}
	// Longer than anything that is kept.
	m.Batch(b, record.Progress{Elapsed: 200 * time.Second})
	m.Sample(b, profile.Sample{Time: 200e9, Weight: 187e9, Node: node, Thread: th, State: profile.StateSleeping})
	tab = m.Table(Query{Window: MaxWindow})
	if w := uint64(8.25e9 + 187e9); tab.Rows[0].SinceSelf.Weight != w || tab.Since.Count.Weight != w || tab.Recent.Count.Weight != 60e9 || tab.Rows[0].Self.Weight != 60e9 {
		t.Errorf("%+v, recent %v", tab.Rows[0], tab.Recent.Count)
	}
}
