package view

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestPageSearchSteps goes from match to match on every tab, by the keyboard and by the button, and
// checks that each match is of the search, differs from the one before, and is visible.
func TestPageSearchSteps(t *testing.T) {
	t.Parallel()
	r := busy(t, 1500, 10_000)
	b := openView(t, served(t, r))
	// The row or frame that the tab points at: its text, and whether it is visible.
	const grid = `(() => { const e = document.querySelector('#pane-%s .grid-row.selected'); if (!e) return {};
		const r = e.getBoundingClientRect(), s = e.closest('.grid-scroll').getBoundingClientRect();
		return {text: e.textContent, row: e.getAttribute('aria-rowindex'), seen: r.top >= s.top - 1 && r.bottom <= s.bottom + 1}; })()`
	const written = `(() => { const e = document.querySelector('#pane-%s .found-here'); if (!e) return {};
		const r = e.getBoundingClientRect(), s = e.closest('.pane').getBoundingClientRect();
		return {text: e.textContent, row: String([...document.querySelectorAll('#pane-%[1]s *')].indexOf(e)), seen: r.top >= s.top - 1 && r.bottom <= s.bottom + 1}; })()`
	for _, x := range []struct{ tab, hash, search, at string }{
		{"methods", "", "HashMap", grid},
		{"tree", "", "HashMap", grid},
		{"tree", "&split=thread", "worker", grid},
		{"callers", "", "HashMap", grid},
		{"threads", "", "worker", grid},
		{"events", "", "running|cpu|alloc", written},
		{"about", "", "app|perf|cpu|sample", written},
	} {
		what := x.tab + x.hash
		b.open("#tab=" + x.tab + x.hash + "&search=" + x.search)
		type place struct {
			Text, Row string
			Seen      bool
		}
		var last place
		seen := map[string]bool{}
		for i, press := range []func(){
			func() { b.Key("n") },
			func() { b.Eval("[...document.querySelectorAll('.step')].at(-1).click()", nil) },
			func() { b.Key("n") },
			func() { b.Key("N") },
		} {
			press()
			at := fmt.Sprintf(x.at, x.tab)
			if i == 0 {
				b.Until(at + ".text")
			} else if len(seen) > 1 || i == 1 {
				b.Until(fmt.Sprintf("(x => x.text && x.row !== %q)(%s)", last.Row, at))
			}
			b.settled()
			var now place
			b.Eval(at, &now)
			if !regexp.MustCompile("(?i)"+x.search).MatchString(now.Text) || !now.Seen {
				t.Errorf("%s: step %d leads to %q, in sight: %v", what, i, now.Text, now.Seen)
			}
			last = now
			seen[now.Row] = true
		}
		if len(seen) < 2 {
			t.Errorf("%s: only row %s was found", what, last.Row)
		}
		if found := b.Text("document.getElementById('found').textContent"); found == "" || found == "no match" {
			t.Errorf("%s: the search says %q", what, found)
		}
	}

	// The call tree opens the path to the match, and does not lead to a row twice before it has led
	// to all.
	b.open("#tab=tree&search=HashMap")
	ways := map[string]bool{}
	for range 8 {
		b.Key("n")
		b.Until("!candid.busy() && candid.shown('tree').length > 0 && /^row/.test(document.getElementById('found').textContent)")
		b.Until(fmt.Sprintf("document.getElementById('found').textContent.startsWith('row %d of ')", len(ways)+1))
		b.Until("/HashMap/.test(candid.shown('tree').at(-1) ?? '')")
		way := b.Text("candid.shown('tree').join(' / ')")
		if ways[way] {
			t.Errorf("the search leads to %q again", way)
		}
		ways[way] = true
	}

	// In a sandwich, frames.
	name := r.p.Funcs[hottest(r.p)].Name
	b.open("#tab=callers&sandwich=1&of=" + name + "&search=.")
	b.Until("!candid.busy() && /frames/.test(document.getElementById('found').textContent)")
	b.Key("n")
	first := b.Text("document.querySelector('.sandwich-line').textContent")
	b.Key("n")
	if second := b.Text("document.querySelector('.sandwich-line').textContent"); second == first {
		t.Errorf("the next match in a sandwich is %q again", second)
	}
	// A heatmap has nothing to search.
	b.open("#tab=heatmap&search=HashMap")
	if b.Text("String([...document.querySelectorAll('.step')].every(e => e.disabled))") != "true" {
		t.Error("on the heatmap the steps of the search can be pressed")
	}
	b.quiet()
}

// TestPageStripStays selects a range of time: nothing may move under the mouse, however wide the
// page is.
func TestPageStripStays(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(1500, 10_000, 40)
	r, err := Open("app.jfr", p)
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	for _, width := range []int{1400, 1000, 760, 420} {
		b.Size(width, 800, 1)
		b.usual("#tab=methods&search=HashMap")
		b.Until("document.querySelector('.hottest').textContent")
		const tops = "['.strip', '#pane-methods'].map(s => document.querySelector(s).getBoundingClientRect().top).join()"
		before := b.Text(tops)
		b.Eval("document.querySelector('.strip').addEventListener('pointermove', () => requestAnimationFrame(() => setTimeout(() => (window.moved ??= []).push("+tops+"), 0)))", nil)
		b.drag(".strip", 0.2, 0.6, 0.5)
		b.Until("candid.state().to > 0 && document.querySelector('.chip')")
		if after := b.Text(tops); after != before {
			t.Errorf("%d pixels wide: the strip and the tab are at %s, before the drag at %s", width, after, before)
		}
		b.Until("window.moved?.length > 0")
		if b.Text(fmt.Sprintf("String(window.moved.every(t => t === %q))", before)) != "true" {
			t.Errorf("%d pixels wide: while it is dragged the strip is at %s, before at %s", width, b.Text("window.moved.join(' ')"), before)
		}
	}
	b.quiet()
}
