package view

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

// withoutStarts returns a stack, outermost frame first, without the frames by which its thread
// started.
func withoutStarts(p *profile.Profile, stack []profile.Frame) []profile.Frame {
	for i, f := range stack {
		fn := &p.Funcs[f.Func]
		if yes, _ := attribution.Starts(f.Kind, fn.Name, fn.Module); yes {
			continue
		}
		if attribution.Begins(f.Kind, fn.Module) {
			return stack[i:]
		}
		break
	}
	return stack
}

// foldedByHand returns a recording whose stacks were taken without how their threads started.
func foldedByHand(p *profile.Profile) *profile.Profile {
	sample := -1
	return restacked(p, func(stack []profile.Frame) ([]profile.Frame, map[int]string) {
		if sample++; p.Samples[sample].End != walk.EndComplete {
			return stack, nil // the frames outside of it are not known
		}
		return withoutStarts(p, stack), nil
	})
}

// TestPageFollowsFolded looks at a recording while it is written, without how threads start.
func TestPageFollowsFolded(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(2000, 10_000, 30)
	p.Meta.Start = time.Now()
	w := newWriter(t, p)
	r := w.followed()
	b := openView(t, served(t, r))
	b.usual("#tab=tree") // before there is a sample
	name := ""
	for i, n := range []int{1000, 2500, 7000, len(p.Samples)} {
		w.to(n)
		all := 0
		for _, s := range p.Samples[:n] {
			if s.Event == 0 {
				all++
			}
		}
		b.Until(fmt.Sprintf("candid.chosen().all.samples === %d && !candid.busy()", all))
		b.sameAs(foldedByHand(r.p), fmt.Sprintf("%d samples", n), profile.Filter{})
		if got := b.chips(); !slices.Equal(got, []string{"thread starts"}) {
			t.Errorf("%d samples: the page says %q", n, got)
		}
		switch i {
		case 1:
			b.Eval("candid.set({tab: 'flame'})", nil)
			b.settled()
			b.Eval("(() => { const i = candid.hottest(); candid.set({zoom: i}); })()", nil)
			name = b.Text("candid.name(candid.state().zoom)")
		case 2, 3:
			if got := b.Text("candid.name(candid.state().zoom)"); got != name {
				t.Errorf("%d samples: it is zoomed to %q, before to %q", n, got, name)
			}
		}
	}
	if err := w.stream.Finish(p); err != nil {
		t.Fatal(err)
	}
	w.ended.Store(true)
	b.Until("!document.querySelector('.facts').textContent.includes('recording, ') && !candid.busy()")
	b.sameAs(foldedByHand(r.p), "the end", profile.Filter{})
	b.quiet()
}

// TestPageStarts looks at stacks without the frames by which threads start, as the page shows them
// by default: every number is that of a report of a recording whose stacks are shorter, and one
// click shows all frames.
func TestPageStarts(t *testing.T) {
	t.Parallel()
	r := busy(t, 2000, 20_000)
	whole := r.p
	folded := foldedByHand(whole)
	roots := func(p *profile.Profile) map[string]float64 {
		sel := p.Select(profile.Filter{})
		out := map[string]float64{}
		sel.Each(func(s *profile.Sample, c profile.Count) {
			name := ""
			for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
				name = flame.Visible(p.Funcs[p.Frames[p.Nodes[n].Frame].Func].Name)
			}
			if s.End != walk.EndComplete {
				name = flame.EndName(s.End)
			}
			out[name] += float64(c.Weight)
		})
		return out
	}
	b := openView(t, served(t, r))
	// sameRoots compares the outermost rows of the call tree.
	sameRoots := func(what string, p *profile.Profile) {
		t.Helper()
		b.Until("candid.rows('tree').length > 0")
		b.settled()
		var rows []struct {
			Depth int
			Name  string
			Total float64
		}
		b.Eval("candid.rows('tree').map(r => ({depth: r.depth, name: r.name, total: r.total}))", &rows)
		got := map[string]float64{}
		for _, row := range rows {
			if row.Depth == 0 {
				got[row.Name] += row.Total
			}
		}
		want := roots(p)
		delete(want, "") // without any frame
		for name, total := range want {
			if math.Abs(got[name]-total) > 1 {
				t.Errorf("%s: the call tree has %v below %s, the stacks %v", what, got[name], name, total)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: the call tree begins with %d methods, the stacks with %d", what, len(got), len(want))
		}
	}
	b.usual("#tab=tree")
	sameRoots("folded", folded)
	b.sameAs(folded, "folded", profile.Filter{})
	if got := b.chips(); !slices.Equal(got, []string{"thread starts"}) {
		t.Errorf("the page says %q", got)
	}
	if got := b.Text("location.hash"); got != "#tab=tree" {
		t.Errorf("the address is %s", got)
	}
	// With other filters, by thread, and merged.
	b.Eval("candid.set({split: 'thread', states: ['running']})", nil)
	b.settled()
	b.sameAs(folded, "by thread", profile.Filter{States: profile.StateSet(0).With(profile.StateRunning)})
	b.Eval("candid.set({split: 'none', states: [], tab: 'flame'})", nil)
	b.settled()
	b.sameAs(folded, "flame graph", profile.Filter{})
	sum := func(p *profile.Profile) (all float64) {
		for _, w := range roots(p) {
			all += w
		}
		return all
	}
	// The callers of a thread's first function are not shown any more.
	b.Eval("candid.set({tab: 'callers', of: 'java.lang.Thread.run'})", nil)
	b.Until("candid.rows('callers').length > 0 && !candid.busy()")
	b.Eval("(document.querySelector('#pane-callers .grid-row .twist:not(.open)')?.click(), 0)", nil)
	b.settled()
	var callers, known float64
	b.Eval("candid.rows('callers').filter(r => r.depth === 1).reduce((a, r) => a + r.total, 0)", &callers)
	sel := folded.Select(profile.Filter{})
	sel.Each(func(s *profile.Sample, c profile.Count) {
		stack := stackOf(folded, s)
		k := slices.IndexFunc(stack, func(f profile.Frame) bool { return folded.Funcs[f.Func].Name == "java.lang.Thread.run" })
		if k > 0 {
			known += float64(c.Weight)
		}
	})
	if math.Abs(callers-known) > 1 {
		t.Errorf("callers of java.lang.Thread.run have %v, in the stacks %v", callers, known)
	}
	b.Eval("candid.set({sandwich: true})", nil)
	b.Until("candid.sandwich()[0].total > 0 && !candid.busy()")
	var callees float64
	b.Eval("candid.sandwich()[1].total", &callees)
	total := 0.0
	for _, m := range sel.List() {
		if sel.Func(m.Method).Name == "java.lang.Thread.run" {
			total = float64(m.Total.Weight)
		}
	}
	if math.Abs(callees-total) > 1 || total == 0 {
		t.Errorf("the sandwich of java.lang.Thread.run has %v, the stacks %v", callees, total)
	}
	// One click shows all frames; the zoom stays.
	b.Eval("candid.set({sandwich: false, of: '', tab: 'flame'})", nil)
	b.settled()
	var zoomed struct {
		Node int
		Name string
	}
	b.Eval("(() => { let i = candid.hottest(); candid.set({zoom: i}); return {node: i, name: candid.name(i)}; })()", &zoomed)
	b.settled()
	var nodes [2]int
	b.Eval("candid.nodes()", &nodes[0])
	b.Eval("document.querySelector('.chip.starts button').click()", nil)
	b.Until("candid.state().starts && !candid.busy()")
	b.Eval("candid.nodes()", &nodes[1])
	if nodes[1] <= nodes[0] {
		t.Errorf("with how threads start there are %d nodes, without %d", nodes[1], nodes[0])
	}
	same := func(what string) {
		t.Helper()
		if got := b.Text("candid.name(candid.state().zoom)"); got != zoomed.Name {
			t.Errorf("%s: %s is zoomed to, before it was %s", what, got, zoomed.Name)
		}
	}
	same("shown")
	b.same("shown", profile.Filter{})
	if got := b.Text("location.hash"); !strings.Contains(got, "starts=shown") {
		t.Errorf("the address is %s", got)
	}
	b.Eval("candid.set({tab: 'tree', zoom: 0})", nil)
	sameRoots("shown", whole)
	b.usual("#tab=tree&starts=shown")
	sameRoots("from its address", whole)
	if got := b.Text("document.querySelector('button.starts').textContent"); got != "Fold thread starts" {
		t.Errorf("the page offers %q", got)
	}
	b.Eval("document.querySelector('button.starts').click()", nil)
	b.Until("!candid.state().starts && !candid.busy()")
	for _, shown := range []string{"true", "false"} {
		b.Eval("dispatchEvent(new KeyboardEvent('keydown', {key: 'u'}))", nil)
		b.Until("String(candid.state().starts) === '" + shown + "' && !candid.busy()")
	}
	sameRoots("folded again", folded)
	if a, z := sum(whole), sum(folded); a != z {
		t.Errorf("%v of all became %v", a, z)
	}
	// An exported file has all frames.
	q, err := r.query(url.Values{"starts": {"fold"}})
	if err != nil {
		t.Fatal(err)
	}
	part, err := r.part(context.Background(), &q)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := roots(part), roots(whole); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("exported stacks begin with %v, the recording's with %v", got, want)
	}
	b.quiet()
}

// TestPageStartsOfLarge opens a recording of so many places that there should not be two trees of
// it: how threads start is shown until somebody folds it, and the address says so.
func TestPageStartsOfLarge(t *testing.T) {
	defer func(n int) { maxShapePlaces = n }(maxShapePlaces)
	r := busy(t, 2000, 20_000)
	maxShapePlaces = len(r.base.tree.Order) - 1
	b := openView(t, served(t, r))
	b.usual("#tab=tree")
	b.same("large", profile.Filter{})
	if len(r.shapes) > 0 {
		t.Errorf("%d more trees were made of it", len(r.shapes))
	}
	state := func(what, starts, hash string) {
		t.Helper()
		b.Until("String(candid.state().starts) === '" + starts + "' && !candid.busy()")
		if got := b.Text("location.hash"); got != hash {
			t.Errorf("%s: the address is %s, not %s", what, got, hash)
		}
	}
	state("large", "true", "#tab=tree")
	b.Eval("document.querySelector('button.starts').click()", nil)
	state("folded", "false", "#tab=tree&starts=fold")
	b.sameAs(foldedByHand(r.p), "folded", profile.Filter{})
	b.usual("#tab=tree&starts=fold")
	state("from its address", "false", "#tab=tree&starts=fold")
	b.sameAs(foldedByHand(r.p), "from its address", profile.Filter{})
	b.Eval("dispatchEvent(new KeyboardEvent('keydown', {key: 'u'}))", nil)
	state("shown again", "true", "#tab=tree")
	b.quiet()
}

// TestPageTreeOfThread goes from a frame of a thread, while threads have roots of their own, to the
// call tree: to that thread, not to the one that has most there.
func TestPageTreeOfThread(t *testing.T) {
	t.Parallel()
	r := busy(t, 2000, 20_000)
	b := openView(t, served(t, r))
	b.usual("#split=thread")
	// A frame of the thread that has least among those on the hottest frame's path.
	var node int
	b.Eval(`(() => {
		const first = candid.hottest(), name = candid.name(first);
		let last = -1;
		for (let i = 1; i < candid.nodes(); i++) if (candid.name(i) === name) last = i;
		return last;
	})()`, &node)
	thread := b.Text(fmt.Sprintf("candid.way(%d)[0]", node))
	way := b.Text(fmt.Sprintf("candid.way(%d).join('\\n')", node))
	b.Eval(fmt.Sprintf("(candid.select(%d), document.querySelector('.pane.flame canvas').focus(), document.querySelector('.pane.flame canvas').dispatchEvent(new KeyboardEvent('keydown', {key: 'm', bubbles: true})))", node), nil)
	b.Eval("[...document.querySelectorAll('.menu:not([hidden]) button')].find(e => e.textContent === 'Call tree').click()", nil)
	b.Until("candid.state().tab === 'tree' && !candid.busy() && document.querySelector('#pane-tree [aria-selected=true]') !== null")
	var shown []string
	b.Eval("candid.shown('tree')", &shown)
	if len(shown) == 0 || shown[0] != thread {
		t.Fatalf("the call tree shows %q, the frame is of %s", shown, thread)
	}
	if got := strings.Join(shown, "\n"); got != way {
		t.Errorf("the call tree shows\n%s\nthe frame is\n%s", got, way)
	}
	b.quiet()
}

// TestPageSparseHeatmap compares two recordings with so few samples that no cell and no column of
// the heatmap differs by more than chance. Longer ranges do, and are coloured; if none does, the
// page says so.
func TestPageSparseHeatmap(t *testing.T) {
	t.Parallel()
	all := busy(t, 500, 20_000).p
	sparse := func(late int) *profile.Profile { // every so many samples, less often before half of the time
		p := *all
		p.Samples = nil
		half := all.Samples[len(all.Samples)-1].Time / 2
		for i, s := range all.Samples {
			s.Event = 0
			if every := 200; i%every == 0 || s.Time > half && i%every < late && i%7 == 0 {
				p.Samples = append(p.Samples, s)
			}
		}
		return &p
	}
	for late, coloured := range map[int]bool{0: false, 50: true} {
		r, err := OpenPair([2]string{"a", "b"}, sparse(0), sparse(late))
		if err != nil {
			t.Fatal(err)
		}
		b := openView(t, served(t, r))
		b.usual("#tab=heatmap")
		b.Until("candid.heatmap().differences.length > 0")
		var h struct{ Coloured, Wrong, Columns int }
		b.Eval(`(() => {
			const h = candid.heatmap(), on = h.differences.map((d, i) => [d, i]).filter(([d, i]) => d !== 0 && !h.grey[i]), half = h.differences.length / 2;
			let columns = 0; // that tell by themselves
			for (let x = 0; x < h.columns; x++) {
				const sum = (s) => h.sides[s].slice(x * 50, (x + 1) * 50).reduce((a, b) => a + b, 0);
				if (!candid.byChance(sum(1), sum(0))) columns++;
			}
			return {coloured: on.length, wrong: on.filter(([d, i]) => d > 0 === i < half).length, columns};
		})()`, &h)
		if h.Columns > 0 {
			t.Errorf("%d: %d columns differ by more than chance: the recordings are not sparse", late, h.Columns)
		}
		if (h.Coloured > 0) != coloured || h.Wrong > h.Coloured/20 {
			t.Errorf("%d: %d cells of the heatmap are coloured, %d of them on the wrong side", late, h.Coloured, h.Wrong)
		}
		if says := b.Text("document.querySelector('#pane-heatmap .pane-title').textContent"); strings.Contains(says, "No stretch of time differs by more than chance") == coloured {
			t.Errorf("%d: the page says %q", late, says)
		}
		b.quiet()
	}
}

// TestPageComparesFiles looks at two files that are only compared: they can be swapped, and shown
// one by one, for which they are read again.
func TestPageComparesFiles(t *testing.T) {
	t.Parallel()
	both := func() [2]*profile.Profile {
		before, after := twoServers(0)
		return [2]*profile.Profile{before, after}
	}
	p := both()
	s := served(t)
	var reads [2]int
	if err := s.Compare([2]string{"old.jfr", "new.jfr"}, p[0], p[1], func(i int) (*profile.Profile, error) {
		reads[i]++
		return both()[i], nil
	}); err != nil {
		t.Fatal(err)
	}
	b := openView(t, s)
	b.open(Compared + "&tab=methods")
	want := both()
	b.sameAs(want[1], "after", profile.Filter{})
	if reads != [2]int{} {
		t.Errorf("files were read %v times again", reads)
	}
	b.Eval("document.querySelector('.files button').click()", nil)
	b.Until("document.title === 'new.jfr → old.jfr · candid' && !candid.busy()")
	b.sameAs(want[0], "turned round", profile.Filter{})
	if reads != [2]int{1, 1} {
		t.Errorf("files were read %v times again", reads)
	}
	b.Eval("(e => { e.value = '-1'; e.dispatchEvent(new Event('change')); })(document.querySelector('[aria-label=\"Compare with\"]'))", nil)
	b.Until("!candid.compared() && !candid.busy()")
	b.sameAs(want[0], "one by itself", profile.Filter{})
	b.quiet()
}
