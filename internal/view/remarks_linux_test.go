package view

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestPageRemarks looks for the rows that reports mark as guessed or coarse: the page marks the
// same ones, and says what that means.
func TestPageRemarks(t *testing.T) {
	t.Parallel()
	for what, p := range map[string]*profile.Profile{"java": profiletest.Java(), "server": profiletest.Server(800, 8000, 20)} {
		for i := range p.Frames {
			if f := &p.Frames[i]; what == "java" && p.Funcs[f.Func].Name == "java.util.HashMap.hash" {
				f.Flags |= walk.Coarse
			}
		}
		r, err := Open(what+".jfr", p)
		if err != nil {
			t.Fatal(err)
		}
		b := openView(t, served(t, r))
		rough := ""
		for _, focus := range []string{"", "HashMap"} {
			sel := p.Select(profile.Filter{Focus: regexp.MustCompile(focus)})
			want := map[string]string{}
			for _, m := range sel.List() {
				mark := ""
				switch {
				case m.Guessed*2 > m.Total.Samples:
					mark = "(guessed) "
				case m.Coarse*2 > m.Self.Samples:
					mark = "(coarse) "
				}
				want[flame.Visible(sel.Func(m.Method).Name)] += mark
			}
			b.open("#tab=methods&focus=" + focus)
			b.Until("document.querySelectorAll('#pane-methods .grid-row').length > 3")
			var got [][2]string
			b.Eval("[...document.querySelectorAll('#pane-methods .grid-row')].map(e => [e.querySelector('.name').textContent, e.querySelector('.remark').textContent])", &got)
			coarse, guessed := 0, 0
			for _, row := range got {
				if want[row[0]] != row[1] {
					t.Errorf("%s, focus %q: %s is marked %q, want %q", what, focus, row[0], row[1], want[row[0]])
				}
				switch row[1] {
				case "(coarse) ":
					coarse++
					rough = row[0]
				case "(guessed) ":
					guessed++
				}
			}
			if coarse == 0 {
				t.Errorf("%s, focus %q: nothing is marked as coarse", what, focus)
			}
			says := b.Text("document.querySelector('#pane-methods .remarks').textContent")
			for word, n := range map[string]int{"(coarse)": coarse, "DebugNonSafepoints": coarse, "(guessed)": guessed} {
				if n > 0 && !strings.Contains(says, word) {
					t.Errorf("%s, focus %q: the page explains its marks by %q", what, focus, says)
				}
			}
		}
		for _, tab := range []string{"tree", "callers"} {
			if what != "java" {
				break // its frames are coarse at random
			}
			b.open("#tab=" + tab + "&focus=" + url.QueryEscape(regexp.QuoteMeta(rough))) // everything goes through it, and is open
			b.Until("[...document.querySelectorAll('#pane-" + tab + " .grid-row .remark')].some(e => e.textContent === '(coarse) ')")
			b.Until("document.querySelector('#pane-" + tab + " .remarks').textContent.includes('DebugNonSafepoints')")
		}
		b.open("#tab=about")
		b.Until("document.querySelector('#pane-about').innerText.includes('(coarse): samples are placed at')")
		b.open("#tab=flame")
		b.Until("document.querySelector('#pane-flame .legend .coarse') !== null")
		// A frame also says so, and is not called exact.
		var said []string
		b.Eval(`(() => { const out = []; for (let i = 1; i < Math.min(300, candid.nodes()); i++) { candid.select(i);
			const e = document.querySelector('#detail .provenance'); if (e?.textContent.includes('coarse')) out.push(e.textContent); } return out; })()`, &said)
		if len(said) == 0 {
			t.Errorf("%s: no frame says that it is coarse", what)
		}
		for _, text := range said {
			if strings.Contains(text, "exact") || !strings.Contains(text, "rough") {
				t.Errorf("%s: a frame says %q", what, text)
			}
		}
		b.quiet()
	}
}

// TestPageSaysCoarse: a coarse frame here and there, as any JVM has them, is no reason for a
// general warning; a method that reports mark is, for its event.
func TestPageSaysCoarse(t *testing.T) {
	t.Parallel()
	for _, marked := range []bool{false, true} {
		p := profiletest.Server(800, 8000, 20)
		coarse, most := 0, p.Funcs[hottest(p)]
		for i := range p.Frames {
			p.Frames[i].Flags &^= walk.Coarse
		}
		p.Nodes = slices.Clone(p.Nodes)
		for i := range p.Samples {
			s := &p.Samples[i]
			n := p.Nodes[s.Node]
			f := p.Frames[n.Frame]
			// One sample of the method that has most, or all samples of that method in one event.
			if p.Funcs[f.Func] != most || !marked && coarse > 0 || marked && s.Event != 1 {
				continue
			}
			f.Flags |= walk.Coarse
			n.Frame = uint32(len(p.Frames))
			p.Frames, p.Nodes = append(p.Frames, f), append(p.Nodes, n)
			s.Node = uint32(len(p.Nodes) - 1)
			coarse++
		}
		r, err := Open("app.jfr", p)
		if err != nil {
			t.Fatal(err)
		}
		if coarse == 0 {
			t.Fatal("nothing is coarse")
		}
		b := openView(t, served(t, r))
		for event := range 2 {
			b.open("#tab=flame&split=none&event=" + number0(event))
			b.Until("document.querySelectorAll('#pane-flame .legend .kind').length > 2")
			if says := b.Text("String(document.querySelector('#pane-flame .legend .coarse') !== null)") == "true"; says != (marked && event == 1) {
				t.Errorf("%d coarse samples, marked: %v: of event %d the legend says coarse: %v", coarse, marked, event, says)
			}
		}
		b.open("#tab=about")
		b.Until("document.querySelector('#pane-about').innerText.includes('How far the stacks can be trusted')")
		if text := b.Text("document.querySelector('#pane-about').innerText"); strings.Contains(text, "(coarse)") != marked || strings.Contains(text, "DebugNonSafepoints places") != marked {
			t.Errorf("%d coarse samples, marked: %v: it says %q", coarse, marked, text)
		}
		b.quiet()
	}
}

// hottest returns the function in which most samples of the second event ended.
func hottest(p *profile.Profile) uint32 {
	count := make([]int, len(p.Funcs))
	best := uint32(0)
	for _, s := range p.Samples {
		if f := p.Frames[p.Nodes[s.Node].Frame].Func; s.Event == 1 && s.Node != profile.RootNode {
			if count[f]++; count[f] > count[best] {
				best = f
			}
		}
	}
	return best
}

// TestPageSmallSigns looks for what is easily missed: that a frame is only a part of its method,
// that there are more tabs than are visible, and the full name of the frame that is zoomed to.
func TestPageSmallSigns(t *testing.T) {
	t.Parallel()
	r := busy(t, 1500, 10_000)
	b := openView(t, served(t, r))
	b.open("#tab=flame&states=running") // for waits the page says who waits
	b.Until("document.querySelector('.hottest').textContent !== ''")
	hottest, _ := strings.CutPrefix(b.Text("document.querySelector('.hottest').textContent"), "Hottest: ")
	share := hottest[strings.LastIndex(strings.TrimSuffix(hottest, " %"), " ")+1:]
	full := b.Text("document.querySelector('.hottest button').title.split('\\n')[0]")
	says := b.Text("(() => { for (let i = 1; i < candid.nodes(); i++) if (candid.name(i) === " + quoted(full) + ") { candid.select(i); return document.querySelector('#detail .method')?.textContent ?? ''; } return 'nowhere'; })()")
	if want := "whole method: self " + share; says != want {
		t.Errorf("a frame of the hottest method says %q, want %q", says, want)
	}
	deep := "(() => { let best = 1; const d = candid.nodes(); for (let i = 1; i < Math.min(d, 400); i++) if (candid.name(i).length > candid.name(best).length) best = i; candid.set({zoom: best}); return 1; })()"
	b.Eval(deep, nil)
	b.Until("document.querySelector('.crumbs .here') !== null")
	var cut float64
	b.Eval("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.crumbs .here'))", &cut)
	if cut > 0 {
		t.Errorf("the last of the way is cut by %v px", cut)
	}
	b.Size(640, 400, 2)
	b.Until("(e => e.scrollWidth > e.clientWidth && getComputedStyle(e).backgroundImage.includes('gradient'))(document.querySelector('.tabs'))")
	b.quiet()
}
