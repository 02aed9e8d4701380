package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// plainRow is a row that is added up sample by sample.
type plainRow struct {
	symbol              uint32 // of the first place
	self, total, before uint64
	samples             uint32
	deeper              bool
	places              map[uint32]*plainPlace
	known, rough, guess uint64
	remark              uint8
}

type plainPlace struct{ samples, self, before, total uint64 }

// plainRows adds up all rows there are, keyed by their path, of the call tree or of the callers.
func plainRows(r *Recording, s *shownTree, w *treeIndex, q, base *Query, ask *rowsQuery, g *groups) map[string]*plainRow {
	out := map[string]*plainRow{}
	count := func(q *Query, before bool) {
		c := r.choose(q)
		for i := range r.p.Samples {
			smp := &r.p.Samples[i]
			weight := chosenOf(r.p, smp, q.From, q.To)
			if weight == 0 || !c.takes(r, i) {
				continue
			}
			end := s.placeOf(r.at[i])
			var way []uint32 // places, the innermost first
			for at := end; at > 0; at = w.parent[at] {
				way = append(way, at)
			}
			if ask.of >= 0 {
				k := slices.IndexFunc(way, func(at uint32) bool { return w.method[s.sym[at]] == ask.of })
				if k < 0 {
					continue
				}
				way = way[k:]
			}
			if !ask.callers {
				slices.Reverse(way)
			}
			group := ^uint32(0)
			if g != nil {
				group = g.first + uint32(g.of[smp.Thread])
			}
			type step struct{ key, symbol, place uint32 }
			var steps []step
			for _, at := range way {
				steps = append(steps, step{w.key[s.sym[at]], s.sym[at], at})
			}
			if g != nil {
				last := step{w.groupKey(s, group), group, nowhere}
				if ask.callers {
					steps = append(steps, last)
				} else {
					steps = append([]step{last}, steps...)
				}
			}
			path := ""
			for k, st := range steps {
				path += fmt.Sprint(" ", st.key)
				row := out[path]
				if row == nil {
					row = &plainRow{symbol: st.symbol, places: map[uint32]*plainPlace{}}
					out[path] = row
				}
				row.deeper = row.deeper || k+1 < len(steps)
				p := row.places[st.place]
				if p == nil {
					p = &plainPlace{}
					row.places[st.place] = p
				}
				if before {
					row.before += weight
					p.before++
					continue
				}
				row.total += weight
				row.samples++
				p.total += weight
				p.samples++
				if k+1 == len(steps) {
					row.self += weight
					p.self += weight
				}
			}
		}
	}
	count(q, false)
	if base != nil {
		count(base, true)
	}
	d := s.doubted()
	for path, row := range out {
		for place, p := range row.places {
			if place == nowhere {
				continue
			}
			if len(row.places) > 1 { // if there are several, it is the first one's
				row.symbol = s.sym[slices.Min(slices.Collect(maps.Keys(row.places)))]
			}
			n, rough := p.samples, strings.Count(path, " ") == 1
			if !ask.callers {
				if n == 0 {
					n = p.before
				}
				rough = p.self > 0 || d.inlined[row.symbol]
			}
			row.known += n
			row.guess += n * uint64(d.guessed[place])
			if rough {
				row.rough += n * uint64(d.coarse[place])
			}
		}
		switch {
		case row.guess*2 > row.known*255:
			row.remark = remarkGuessed
		case row.rough*2 > row.known*255:
			row.remark = remarkCoarse
		}
	}
	return out
}

// openSome chooses open rows at random, and returns them in the notation of the page and by path.
func openSome(rnd *rand.Rand, rows map[string]*plainRow, some float64) (string, map[string]bool) {
	open := map[string]bool{}
	below := map[string][]string{}
	for path := range rows {
		up := path[:strings.LastIndexByte(path, ' ')]
		below[up] = append(below[up], path)
	}
	var out []string
	var visit func(up string, depth int)
	visit = func(up string, depth int) {
		list := below[up]
		slices.Sort(list)
		for _, path := range list {
			if rnd.Float64() < some && rows[path].deeper && len(out) < 4000 {
				open[path] = true
				out = append(out, fmt.Sprintf("%d.%d", depth, rows[path].symbol))
				visit(path, depth+1)
			}
		}
	}
	visit("", 0)
	return strings.Join(out, "_"), open
}

// sameRows compares the rows that are shown with those that were added up one by one.
func sameRows(t *testing.T, what string, w *treeIndex, s *shownTree, x *table, all map[string]*plainRow, open map[string]bool) {
	t.Helper()
	want := map[string]bool{}
	for path := range all {
		seen := true
		for up := path[:strings.LastIndexByte(path, ' ')]; up != "" && seen; up = up[:strings.LastIndexByte(up, ' ')] {
			seen = open[up]
		}
		if seen {
			want[path] = true
		}
	}
	keyOf := func(symbol uint32) uint32 {
		if int(symbol) < len(w.key) {
			return w.key[symbol]
		}
		return w.groupKey(s, symbol)
	}
	var way []string
	var last []*tableRow
	got := map[string]bool{}
	for i := range x.rows {
		row := &x.rows[i]
		d := int(row.depth)
		if d > len(way) || i == 0 && d != 0 {
			t.Fatalf("%s: row %d is at depth %d below one at depth %d", what, i, d, len(way)-1)
		}
		if d < len(last) && last[d] != nil && last[d].heavier(row) > 0 && d < len(way) {
			t.Fatalf("%s: row %d (%+v) comes after a lighter one (%+v)", what, i, *row, *last[d])
		}
		way, last = append(way[:d], fmt.Sprint(" ", keyOf(row.symbol))), append(last[:d], row)
		path := strings.Join(way, "")
		p := all[path]
		if p == nil || !want[path] || got[path] {
			t.Fatalf("%s: row %d, %s, is there (twice: %v), and should not be (known: %v)", what, i, path, got[path], p != nil)
		}
		got[path] = true
		if row.self != p.self || row.total != p.total || row.before != p.before || row.samples != p.samples || row.leaf == p.deeper || row.open != open[path] || row.remark != p.remark {
			t.Fatalf("%s: row %s is %+v, want %+v, open %v", what, path, *row, *p, open[path])
		}
		switch place := p.places[row.place]; {
		case place == nil:
			t.Fatalf("%s: row %s is at place %d, which it is not", what, path, row.place)
		case !x.callers && p.total > 0: // for callers it is the place with most in all
			for at, o := range p.places {
				if o.total > place.total {
					t.Fatalf("%s: row %s is at place %d with %d, and has %d with %d", what, path, row.place, place.total, at, o.total)
				}
			}
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
}

func (r *Recording) askRows(ctx context.Context, v url.Values) (*table, *Query, *Query, *shownTree, *rowsQuery, error) {
	q, base, err := r.compared(v)
	if err != nil {
		return nil, nil, nil, nil, nil, err
	}
	s, err := r.shapeFor(q.rewrite)
	if err != nil {
		return nil, nil, nil, nil, nil, err
	}
	ask, err := r.ways(s).rowsQuery(s, v)
	if err != nil {
		return nil, nil, nil, nil, nil, err
	}
	x, err := r.table(ctx, &q, base, s, ask)
	return x, &q, base, s, ask, err
}

// TestRows compares call trees and callers with sums over the samples: everything that a filter
// chooses, threads and processes apart, two ranges of time and two recordings, with frames left
// out, and with rows opened at random.
func TestRows(t *testing.T) {
	r := busy(t, 1200, 6000)
	for i := range r.p.Threads {
		r.p.Threads[i].PID = 100 + i%3
	}
	r.p.Processes = []profile.Process{{PID: 101}, {PID: 100}, {PID: 102}}
	whole := profiletest.Server(1000, 8000, 40)
	pair, err := OpenPair([2]string{"a", "b"}, profile.Apply(whole, profile.Filter{To: 20e9}), profile.Apply(whole, profile.Filter{From: 15e9}))
	if err != nil {
		t.Fatal(err)
	}
	end := strconv.FormatUint(r.end/2, 10)
	rnd := rand.New(rand.NewPCG(5, 1))
	var asked []question
	for _, c := range questions(r) {
		c.ask.Del("split")
		for _, split := range []string{"", "thread", "process"} {
			ask := maps.Clone(c.ask)
			if split != "" {
				ask.Set("split", split)
			}
			asked = append(asked, question{c.name + " " + split, ask, c.filter})
		}
	}
	for _, split := range []string{"", "thread"} {
		asked = append(asked,
			question{"merged " + split, url.Values{"merge": {"Order|HashMap"}, "split": {split}}, profile.Filter{}},
			question{"nothing but roots " + split, url.Values{"merge": {"."}, "split": {split}}, profile.Filter{}},
			question{"collapsed " + split, url.Values{"collapse": {"package java.util"}, "recursion": {"."}, "split": {split}}, profile.Filter{}})
	}
	asked = append(asked, question{"two stretches", url.Values{"to": {end}, "base": {end + "-" + strconv.FormatUint(r.end, 10)}}, profile.Filter{}})
	check := func(r *Recording, c question) {
		for _, way := range []string{"tree", "callers", "one"} {
			v := maps.Clone(c.ask)
			v.Set("most", "200000")
			v.Set("way", way)
			what := c.name + ", " + way
			if way == "one" {
				v.Set("way", "callers")
				v.Set("of", strconv.Itoa(rnd.IntN(40)))
			}
			x, q, base, s, ask, err := r.askRows(context.Background(), v)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			w := r.ways(s)
			var g *groups
			if ask.split != "" && base == nil {
				g = r.groupsOf(s, ask.split)
			}
			all := plainRows(r, s, w, q, base, ask, g)
			sameRows(t, what, w, s, x, all, nil)
			for _, some := range []float64{0.3, 0.9} {
				text, open := openSome(rnd, all, some)
				v.Set("open", text)
				if x, _, _, _, _, err = r.askRows(context.Background(), v); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				sameRows(t, what+", open", w, s, x, all, open)
				// With fewer rows asked for, they are the first ones of all.
				if n := len(x.rows); n > 3 {
					v.Set("most", strconv.Itoa(n/2))
					few, _, _, _, _, err := r.askRows(context.Background(), v)
					if err != nil || !few.more || !slices.EqualFunc(few.rows, x.rows[:n/2], func(a, b tableRow) bool {
						return cmp.Compare(a.symbol, b.symbol) == 0 && a.total == b.total && a.depth == b.depth
					}) {
						t.Fatalf("%s: %d of %d rows are others (%v), more: %v", what, n/2, n, err, few.more)
					}
					v.Set("most", "200000")
				}
				v.Del("open")
			}
		}
	}
	for _, c := range asked {
		check(r, c)
	}
	check(pair, question{"two recordings", url.Values{}, profile.Filter{}})
}

// TestRowsOpenByThemselves checks which rows open though nobody opened them: those that most of a
// fresh table goes through, those that nearly all of a row goes through when it opens, and the path
// to a place.
func TestRowsOpenByThemselves(t *testing.T) {
	r := busy(t, 1500, 10_000)
	ask := func(v url.Values) *table {
		t.Helper()
		x, _, _, _, _, err := r.askRows(context.Background(), v)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, split := range []string{"", "thread"} {
		x := ask(url.Values{"way": {"tree"}, "begin": {"1"}, "split": {split}})
		open := 0
		for i := range x.rows {
			row := &x.rows[i]
			if row.open {
				open++
			}
			if want := float64(row.total) >= beginShare*float64(x.all) && !row.leaf; row.open != want {
				t.Errorf("split %q: %+v of %d", split, *row, x.all)
			}
		}
		if split == "" && open == 0 || open > beginRows {
			t.Errorf("%d rows open by themselves", open)
		}
		// A row that is opened, and what is below it as long as nearly all goes there.
		first := &x.rows[0]
		x = ask(url.Values{"way": {"tree"}, "open": {fmt.Sprint("0.", first.symbol)}, "unfold": {"0"}, "split": {split}})
		over := first.total
		for i := range x.rows {
			row := &x.rows[i]
			if row.open != (int(row.depth) == i && !row.leaf && float64(row.total) >= unfoldShare*float64(over)) {
				t.Errorf("split %q: row %d is %+v below one of %d", split, i, *row, over)
			}
			if over = row.total; !row.open && int(row.depth) == i {
				over = ^uint64(0) // nothing further
			}
		}
		// The path to each of some places.
		w := r.ways(r.base)
		for place := uint32(5); int(place) < len(w.end); place += 97 {
			if r.base.tree.Samples[r.base.tree.Order[place]] == 0 {
				continue
			}
			x := ask(url.Values{"way": {"tree"}, "place": {fmt.Sprint(place)}, "split": {split}})
			if x.whole.after.samples(place) == 0 {
				continue // none of this event
			}
			if x.shown < 0 || w.key[x.rows[x.shown].symbol] != w.key[r.base.sym[place]] || x.rows[x.shown].open {
				t.Fatalf("split %q: place %d is shown in row %d", split, place, x.shown)
			}
			want := w.depth[place] - 1
			if split != "" {
				want++
			}
			if x.rows[x.shown].depth != want {
				t.Errorf("split %q: place %d is shown at depth %d, want %d", split, place, x.rows[x.shown].depth, want)
			}
		}
	}
}

// TestRowsBounded asks for more rows than are allowed, and cancels requests.
func TestRowsBounded(t *testing.T) {
	// One method that calls itself, and ends at every depth.
	b := profile.NewBuilder()
	p := b.Profile()
	p.Processes = []profile.Process{{PID: 1}}
	p.Meta.Duration, p.Events = 1e9, []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1}}
	thread := b.Thread(1, 1, "main")
	frame := b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "f"})})
	const deep = 1500
	at := uint32(profile.RootNode)
	for i := range deep {
		at = b.Node(at, frame)
		b.Add(profile.Sample{Time: uint64(i), Weight: 1, Thread: thread, Node: at, State: profile.StateRunning})
	}
	r, err := Open("deep.jfr", b.Profile())
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for i := range deep {
		open = append(open, fmt.Sprint(i, ".0"))
	}
	for _, split := range []string{"", "thread", "process"} {
		for _, way := range []string{"tree", "callers"} {
			v := url.Values{"way": {way}, "open": {strings.Join(open, "_")}, "split": {split}}
			if way == "tree" && split == "thread" {
				v.Set("open", "0."+fmt.Sprint(len(r.base.tree.Symbols))+"_1.0_2.0")
			}
			x, _, _, _, _, err := r.askRows(context.Background(), v)
			if err != nil || way == "callers" && (len(x.rows) < deep || x.rows[deep-1].total != 1) {
				t.Errorf("%s, split %q: %d rows, %v", way, split, len(x.rows), err)
			}
			if few := 10; err == nil {
				v.Set("most", strconv.Itoa(few))
				x, _, _, _, _, err := r.askRows(context.Background(), v)
				if err != nil || len(x.rows) > few {
					t.Errorf("%s, split %q: %d rows, %v", way, split, len(x.rows), err)
				}
			}
			gone, cancel := context.WithCancel(context.Background())
			cancel()
			if _, _, _, _, _, err := r.askRows(gone, v); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, split %q, of what nobody waits for: %v", way, split, err)
			}
			// Also when its sums are remembered.
			q, _ := r.query(v)
			ask, err := r.ways(r.base).rowsQuery(r.base, v)
			if err != nil {
				t.Fatal(err)
			}
			ask.most = maxRows
			err = r.lend(context.Background(), &q, r.base, func(k *remembered, after *placeSums) error {
				x := r.newTable(gone, r.base, after, nil)
				if g := r.groupsOf(r.base, split); split != "" && g != nil {
					x.split = r.newSplit(&q, g, k)
				}
				return x.make(ask)
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, split %q, remembered: %v", way, split, err)
			}
		}
	}
	defer func(most int) { maxRowWork = most }(maxRowWork)
	maxRowWork = deep * deep / 4
	if _, _, _, _, _, err := r.askRows(context.Background(), url.Values{"way": {"callers"}, "open": {strings.Join(open, "_")}}); !errors.Is(err, ErrQuery) {
		t.Errorf("more work than there should be: %v", err)
	}
}

// BenchmarkRows makes the rows of five million samples in a million places: with remembered sums,
// as when a row opens, or with new ones, as when another range of time is chosen.
func BenchmarkRows(b *testing.B) {
	r, err := Open("large", profiletest.Server(1_000_000, 5_000_000, 60))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []string{"way=tree", "way=callers", "way=callers&of=5", "way=tree&split=thread", "way=callers&split=thread"} {
		v, err := url.ParseQuery(c + "&begin=1")
		if err != nil {
			b.Fatal(err)
		}
		ask := func(b *testing.B) {
			if _, err := rowsMessage(context.Background(), r, v); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(c, func(b *testing.B) {
			for b.Loop() {
				ask(b)
			}
		})
		// The rows that are open then are opened again: in a table of threads the first one is.
		x, _, _, _, _, err := r.askRows(context.Background(), v)
		if err != nil {
			b.Fatal(err)
		}
		v.Set("open", fmt.Sprint("0.", x.rows[0].symbol))
		v.Set("unfold", "0")
		b.Run(c+", opened", func(b *testing.B) {
			for b.Loop() {
				ask(b)
			}
		})
		n := uint64(0)
		b.Run(c+", opened and filtered", func(b *testing.B) {
			for b.Loop() {
				n++
				v.Set("from", strconv.FormatUint(r.end/10+n, 10))
				v.Set("to", strconv.FormatUint(r.end/10*6+n, 10))
				ask(b)
			}
		})
	}
}
