package view

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/report"
)

// busy returns a recording of a server whose threads were in several states.
func busy(t testing.TB, nodes, samples int) *Recording {
	t.Helper()
	p := profiletest.Server(nodes, samples, 40)
	r := rand.New(rand.NewPCG(3, 5))
	p.Syscalls = []string{"", "futex", "epoll_wait"}
	for i := range p.Samples {
		p.Samples[i].State = profile.State(r.IntN(profile.NumStates))
		p.Samples[i].Syscall = uint16(r.IntN(len(p.Syscalls)))
	}
	// Threads are read one after the other, so samples may come out of order.
	for i := 0; i+7 < len(p.Samples); i += 50 {
		p.Samples[i], p.Samples[i+7] = p.Samples[i+7], p.Samples[i]
	}
	rec, err := Open("busy.jfr", p)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// question is a filter as the page asks for it, and as a report takes it.
type question struct {
	name   string
	ask    url.Values
	filter profile.Filter
}

func questions(r *Recording) []question {
	sec := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	ns := func(d time.Duration) string { return strconv.FormatInt(int64(d), 10) }
	second := uint32(1)
	end := time.Duration(r.end)
	return []question{
		{"all", url.Values{}, profile.Filter{}},
		{"event", url.Values{"event": {"1"}}, profile.Filter{Event: 1}},
		{"time", url.Values{"from": {ns(end / 3)}, "to": {ns(end / 2)}}, profile.Filter{From: end / 3, To: end / 2}},
		{"from", url.Values{"from": {ns(sec(3))}}, profile.Filter{From: sec(3)}},
		{"thread", url.Values{"threads": {"1"}}, profile.Filter{OneThread: &second}},
		{"states", url.Values{"states": {"sleeping,disk"}}, profile.Filter{States: profile.StateSet(0).With(profile.StateSleeping).With(profile.StateDisk)}},
		{"focus", url.Values{"focus": {"HashMap"}}, profile.Filter{Focus: regexp.MustCompile("HashMap")}},
		{"ignore", url.Values{"ignore": {"(?i)nioeventloop|Monitor"}}, profile.Filter{Ignore: regexp.MustCompile("(?i)nioeventloop|Monitor")}},
		{"many", url.Values{"from": {ns(sec(2))}, "to": {ns(sec(40))}, "focus": {"Order"}, "ignore": {"String"}, "states": {"running"}, "split": {"1"}},
			profile.Filter{From: sec(2), To: sec(40), Focus: regexp.MustCompile("Order"), Ignore: regexp.MustCompile("String"), States: profile.StateSet(0).With(profile.StateRunning)}},
		{"nothing", url.Values{"focus": {"no such method"}}, profile.Filter{Focus: regexp.MustCompile("no such method")}},
	}
}

// TestCounts compares what the page is sent with what a report says of the same filter.
func TestCounts(t *testing.T) {
	r := busy(t, 4000, 150_000)
	for _, c := range questions(r) {
		q, err := r.query(c.ask)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got, err := r.Count(context.Background(), &q)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		sel := r.p.Select(c.filter)
		if got.All != sel.All || got.Chosen != sel.Chosen || got.Quality != sel.Quality {
			t.Errorf("%s: chosen %+v of %+v, want %+v of %+v; quality %+v, want %+v", c.name, got.Chosen, got.All, sel.Chosen, sel.All, got.Quality, sel.Quality)
		}
		if c.name != "nothing" && c.name != "all" && (sel.Chosen.Samples == 0 || sel.Chosen == sel.All && c.name != "event") {
			t.Errorf("%s: the filter chooses %d of %d samples: it tests nothing", c.name, sel.Chosen.Samples, sel.All.Samples)
		}
		if !slices.Equal(got.Threads, sel.Threads) {
			t.Errorf("%s: threads %v, want %v", c.name, got.Threads, sel.Threads)
		}
		if want := sel.ByState(); !slices.Equal(got.States, want) {
			t.Errorf("%s: states %v, want %v", c.name, got.States, want)
		}
		// By place: the samples that end there.
		want := map[[2]uint32]profile.Count{}
		for i := range r.p.Samples {
			s := &r.p.Samples[i]
			weight := chosenOf(r.p, s, uint64(c.filter.From), uint64(c.filter.To))
			if int(s.Event) != q.Event || weight == 0 || !c.filter.States.Has(s.State) || c.filter.OneThread != nil && s.Thread != *c.filter.OneThread || !r.passes(s, c.filter) {
				continue
			}
			k := [2]uint32{r.at[i], 0}
			if q.ByThread {
				k[1] = s.Thread
			}
			n := want[k]
			n.Add(profile.Count{Samples: 1, Weight: weight})
			want[k] = n
		}
		if len(want) != len(got.Cells) {
			t.Errorf("%s: %d cells, want %d", c.name, len(got.Cells), len(want))
		}
		for i, cell := range got.Cells {
			if want[[2]uint32{cell.Place, cell.Thread}] != cell.Count {
				t.Fatalf("%s: place %d thread %d has %+v, want %+v", c.name, cell.Place, cell.Thread, cell.Count, want[[2]uint32{cell.Place, cell.Thread}])
			}
			if i > 0 && got.Cells[i-1].Place > cell.Place {
				t.Fatalf("%s: cells are not in the order of their places", c.name)
			}
		}
		// A file of what is shown says the same.
		part, err := r.part(context.Background(), &q)
		if err != nil {
			t.Fatal(err)
		}
		if rep := report.Make(part.Select(profile.Filter{}), report.Options{}); profile.Count(rep.All) != sel.Chosen {
			t.Errorf("%s: the exported part has %+v, want %+v", c.name, rep.All, sel.Chosen)
		}
	}
}

// chosenOf returns how much of a sample lies between two times: for a wait the overlap.
func chosenOf(p *profile.Profile, s *profile.Sample, from, to uint64) uint64 {
	if to == 0 {
		to = 1 << 62
	}
	if s.State <= profile.StateRunning || p.Events[s.Event].Unit != "nanoseconds" {
		if s.Time < from || s.Time >= to {
			return 0
		}
		return s.Weight
	}
	begin, end, low := int64(s.Time)-int64(s.Weight), int64(s.Time), int64(from)
	if from == 0 {
		low = begin
	}
	return uint64(max(0, min(end, int64(to))-max(begin, low)))
}

// TestWaitsOverTime cuts recordings with waits of all lengths at random times: each range has the
// parts of them that lie in it, all ranges together have the whole, and lanes, the heatmap and a
// file of a range say the same.
func TestWaitsOverTime(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 7))
	ctx := context.Background()
	for round := range 10 {
		p := profiletest.Server(300, 3000, 40)
		p.Events[1] = profile.Event{Name: "off-cpu", Kind: profile.EventOffCPU, Unit: "nanoseconds", Period: 1_000_000}
		for i := range p.Samples {
			s := &p.Samples[i]
			s.State = profile.State(rnd.IntN(profile.NumStates))
			switch rnd.IntN(20) {
			case 0:
				s.Weight = rnd.Uint64N(s.Time + 1)
			case 1:
				s.Weight = s.Time + rnd.Uint64N(1e9)
			}
		}
		r, err := Open("waits.jfr", p)
		if err != nil {
			t.Fatal(err)
		}
		cuts := []uint64{0}
		for range 6 {
			cuts = append(cuts, 1+rnd.Uint64N(r.end))
		}
		slices.Sort(cuts)
		cuts = slices.Compact(append(cuts, 0))
		for event := range p.Events {
			var sum uint64
			for i, from := range cuts[:len(cuts)-1] {
				q := Query{Event: event, From: from, To: cuts[i+1]}
				f := profile.Filter{Event: event, From: time.Duration(q.From), To: time.Duration(q.To)}
				got, err := r.Count(ctx, &q)
				if err != nil {
					t.Fatal(err)
				}
				threads := make([]uint64, len(p.Threads))
				for k := range p.Samples {
					if s := &p.Samples[k]; int(s.Event) == event {
						threads[s.Thread] += chosenOf(p, s, q.From, q.To)
					}
				}
				for k, n := range got.Threads {
					if n.Weight != threads[k] {
						t.Fatalf("round %d: from %d to %d thread %d has %d, want %d", round, q.From, q.To, k, n.Weight, threads[k])
					}
				}
				sum += got.Chosen.Weight
				if sel := p.Select(f); sel.Chosen != got.Chosen || !slices.Equal(sel.Threads, got.Threads) {
					t.Fatalf("round %d: from %d to %d: a report says %+v, the page %+v", round, q.From, q.To, sel.Chosen, got.Chosen)
				}
				if _, chosen := p.Passing(f); chosen != got.Chosen {
					t.Fatalf("round %d: %+v pass, %+v are chosen", round, chosen, got.Chosen)
				}
				if cut := profile.Apply(p, f).Select(profile.Filter{Event: event}); cut.All != got.Chosen {
					t.Fatalf("round %d: from %d to %d: cut out are %+v, chosen %+v", round, q.From, q.To, cut.All, got.Chosen)
				}
				by := q
				by.ByThread = true
				split, err := r.Count(ctx, &by)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range split.Cells {
					threads[c.Thread] -= c.Weight
				}
				if slices.Max(threads) != 0 {
					t.Fatalf("round %d: what each thread has of each place is not what it has: off by %d", round, threads)
				}
				if q.To == 0 {
					continue
				}
				near := func(a, b float64) bool { return math.Abs(a-b) <= 1+1e-6*b } // float32
				w := Window{From: q.From, To: q.To, Bins: 1}
				over, err := r.Overview(ctx, &q, w)
				if err != nil {
					t.Fatal(err)
				}
				lanes, err := r.Lanes(ctx, &q, Window{From: q.From, To: q.To, Bins: 97}, []uint32{0, 1})
				if err != nil {
					t.Fatal(err)
				}
				heat, err := r.Heatmap(ctx, &q, q.From, q.To, 20_000_000, 50)
				if err != nil {
					t.Fatal(err)
				}
				var all, lane, cells float64
				for _, v := range over {
					all += v
				}
				for _, v := range lanes.Weight[97:] {
					lane += float64(v)
				}
				for _, v := range heat {
					cells += float64(v)
				}
				if want := float64(got.Chosen.Weight); !near(all, want) || !near(cells, want) || !near(lane, float64(got.Threads[1].Weight)) {
					t.Fatalf("round %d: from %d to %d: the overview has %f, the heatmap %f, want %f; the lane %f, want %d",
						round, q.From, q.To, all, cells, want, lane, got.Threads[1].Weight)
				}
			}
			if sum != r.all[event].Weight {
				t.Errorf("round %d: all stretches together have %d, the whole %d", round, sum, r.all[event].Weight)
			}
		}
	}
}

// passes reports whether a sample's own stack passes the expressions.
func (r *Recording) passes(s *profile.Sample, f profile.Filter) bool {
	focus := f.Focus == nil
	for n := s.Node; n != profile.RootNode; n = r.p.Nodes[n].Parent {
		name := r.p.Funcs[r.p.Frames[r.p.Nodes[n].Frame].Func].Name
		if f.Ignore != nil && f.Ignore.MatchString(name) {
			return false
		}
		focus = focus || f.Focus.MatchString(name)
	}
	return focus
}

// TestOverTime adds up timelines and heatmaps, which must lose nothing.
func TestOverTime(t *testing.T) {
	r := busy(t, 1000, 20_000)
	ctx := context.Background()
	for _, c := range questions(r) {
		q, err := r.query(c.ask)
		if err != nil {
			t.Fatal(err)
		}
		whole := q
		whole.From, whole.To, whole.ByThread = 0, 0, false
		want, err := r.Count(ctx, &whole)
		if err != nil {
			t.Fatal(err)
		}
		sum := func(list []float64) (s float64) {
			for _, v := range list {
				s += v
			}
			return s
		}
		w := Window{To: r.end, Bins: 777}
		over, err := r.Overview(ctx, &q, w)
		if err != nil {
			t.Fatal(err)
		}
		if got, all := sum(over), float64(want.Chosen.Weight); math.Abs(got-all) > 1e-9*all {
			t.Errorf("%s: the overview has %v, want %d", c.name, got, want.Chosen.Weight)
		}
		all := whole
		all.Threads = nil
		counts, err := r.Count(ctx, &all)
		if err != nil {
			t.Fatal(err)
		}
		lanes, err := r.Lanes(ctx, &q, w, []uint32{0, 1, 5})
		if err != nil {
			t.Fatal(err)
		}
		for i, thread := range []int{0, 1, 5} {
			var got float64
			for _, v := range lanes.Weight[i*w.Bins : (i+1)*w.Bins] {
				got += float64(v)
			}
			if want := float64(counts.Threads[thread].Weight); got < want*0.999 || got > want*1.001 { // float32
				t.Errorf("%s: lane of thread %d has %v, want %v", c.name, thread, got, want)
			}
		}
		heat, err := r.Heatmap(ctx, &q, 0, r.end, 20_000_000, 50)
		if err != nil {
			t.Fatal(err)
		}
		var got float64
		for _, v := range heat {
			got += float64(v)
		}
		if want := float64(want.Chosen.Weight); got < want*0.999 || got > want*1.001 {
			t.Errorf("%s: the heatmap has %v, want %v", c.name, got, want)
		}
	}
}

// TestHugeHeatmap asks for as much time as a number can hold.
func TestHugeHeatmap(t *testing.T) {
	r := busy(t, 100, 2000)
	for _, cell := range []uint64{1 << 61, 1 << 62, 1 << 43} {
		cells, err := r.Heatmap(t.Context(), new(Query), 0, math.MaxUint64, cell, 1)
		if err != nil {
			continue // more cells than are allowed
		}
		var got, want float64
		for _, v := range cells {
			got += float64(v)
		}
		for i := range r.p.Samples {
			if s := &r.p.Samples[i]; s.Event == 0 {
				want += float64(s.Weight)
			}
		}
		if got < want*0.999 || got > want*1.001 {
			t.Errorf("cells of %d ns: %v, want %v", cell, got, want)
		}
	}
}

// TestCancelled makes sure that summing stops for a page that has moved on.
func TestCancelled(t *testing.T) {
	r := busy(t, 1000, 20_000)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, split := range []bool{false, true} {
		if _, err := r.Count(ctx, &Query{ByThread: split}); !errors.Is(err, context.Canceled) {
			t.Errorf("count: %v", err)
		}
	}
	if _, err := r.Overview(ctx, &Query{}, Window{To: r.end, Bins: 10}); !errors.Is(err, context.Canceled) {
		t.Errorf("overview: %v", err)
	}
	if _, err := r.part(ctx, &Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("part: %v", err)
	}
}

// TestBadQueries must be refused, not crash.
func TestBadQueries(t *testing.T) {
	r := busy(t, 500, 2000)
	ctx := context.Background()
	for _, bad := range []struct{ question, query string }{
		{"counts", "event=9"}, {"counts", "event=-1"}, {"counts", "from=x"}, {"counts", "to=99999999999999999999"}, {"counts", "threads=a"},
		{"counts", "threads=1-x"}, {"counts", "states=asleep"}, {"counts", "focus=("}, {"counts", "ignore=%5B"},
		{"overview", "bins=0"}, {"overview", "bins=100000000"}, {"overview", "w0=5&w1=5"}, {"overview", "w1=x"},
		{"lanes", "lanes=0-x"}, {"lanes", "bins=-4"},
		{"heatmap", "cell=0&rows=50"}, {"heatmap", "cell=1&rows=50"}, {"heatmap", "cell=1000000&rows=100000000"}, {"heatmap", "rows=1"}, {"heatmap", "cell=20000000&rows=-1"},
		{"heatmap", "cell=4000000000000000000&rows=8000"},
		{"rows", ""}, {"rows", "way=up"}, {"rows", "way=callers&of=999999"}, {"rows", "way=callers&of=-1"}, {"rows", "way=callers&of=x"}, {"rows", "way=tree&most=x"},
		{"rows", "way=tree&open=1.0"}, {"rows", "way=tree&open=0.0_2.0"}, {"rows", "way=tree&open=0"}, {"rows", "way=tree&open=0.x"}, {"rows", "way=tree&open=0.99999999999"}, {"rows", "way=tree&open=0.1_"},
		{"rows", "way=tree&open=0.1" + strings.Repeat("_0.1", maxOpened)}, {"rows", "way=tree&unfold=x"}, {"rows", "way=tree&split=state"}, {"rows", "way=tree&place=0"},
		{"rows", "way=tree&place=99999999"}, {"rows", "way=callers&place=1"}, {"rows", "way=tree&base=5-x"}, {"rows", "way=tree&side=before"},
	} {
		v, err := url.ParseQuery(bad.query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := answers[bad.question](ctx, r, v); !errors.Is(err, ErrQuery) {
			t.Errorf("%s?%s: %v", bad.question, bad.query, err)
		}
	}
	for _, v := range []url.Values{{}, {"format": {"exe"}}, {"format": {"../../etc"}}} {
		if _, _, err := r.export(ctx, v); !errors.Is(err, ErrQuery) {
			t.Errorf("export %v: %v", v, err)
		}
	}
	many := url.Values{"focus": make([]string, maxExpressions+1)}
	if _, err := r.query(many); !errors.Is(err, ErrQuery) {
		t.Errorf("%d expressions: %v", maxExpressions+1, err)
	}
}

func FuzzQuery(f *testing.F) {
	r := busy(f, 300, 500)
	for _, s := range []string{"event=1&from=5&to=9", "threads=0.2-4.9999999999&states=running,disk&split=1", "focus=a.*b&ignore=^c$", "w0=1&w1=9&bins=3&lanes=0-9", "cell=20000000&rows=50",
		"way=tree&begin=1&split=thread&place=7", "way=callers&of=3&open=0.3_1.2_2.9&unfold=1", "way=callers&split=process&base=5-900&most=3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := url.ParseQuery(s)
		if err != nil || len(s) > 300 {
			return
		}
		for name, a := range answers {
			if name == "tree" || name == "about" {
				continue
			}
			_, _ = a(context.Background(), r, v) // must neither crash nor take long
		}
	})
}

func TestNamesAsShown(t *testing.T) {
	r := busy(t, 2000, 8000)
	for _, name := range profiletest.Hostile {
		re := regexp.MustCompile("^" + regexp.QuoteMeta(flame.Visible(name)) + "$")
		if !slices.Contains(r.matching(re), true) {
			t.Errorf("the page cannot ask for %q", name)
		}
	}
}

// BenchmarkCount filters five million samples of a million places, as the page does while a range
// of time is dragged.
func BenchmarkCount(b *testing.B) {
	p := profiletest.Server(1_000_000, 5_000_000, 60)
	r, err := Open("large", p)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d places", len(r.parent))
	re := regexp.MustCompile("HashMap")
	for _, c := range []struct {
		name string
		q    Query
	}{
		{"all", Query{}}, {"tenth", Query{From: r.end / 2, To: r.end/2 + r.end/10}}, {"half", Query{From: r.end / 4, To: r.end / 4 * 3}},
		{"focus", Query{Focus: []*regexp.Regexp{re}}}, {"bythread", Query{ByThread: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Count(context.Background(), &c.q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("overview", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Overview(context.Background(), &Query{}, Window{To: r.end, Bins: 1000}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
