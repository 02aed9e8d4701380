package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/chromium"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/report"
)

// viewPage is a browser that shows the page of a recording.
type viewPage struct {
	*chromium.Browser
	t   testing.TB
	url string
	r   *Recording
}

func openView(t testing.TB, s *Server) *viewPage {
	b := &viewPage{chromium.Open(t, 1280, 800), t, s.URL(), nil}
	if len(s.recordings) > 0 {
		b.r = s.recordings[0]
	}
	b.Dark(false)
	return b
}

// open shows the page with whole stacks, as reports have them, and waits until it is there.
func (b *viewPage) open(hash string) {
	b.t.Helper()
	switch {
	case hash == "":
		hash = "#starts=shown"
	case !strings.Contains(hash, "starts="):
		hash += "&starts=shown"
	}
	b.usual(strings.Replace(hash, "#&", "#", 1))
}

// usual shows the page as it is when its address says nothing else: the frames by which threads
// start are folded.
func (b *viewPage) usual(hash string) {
	b.t.Helper()
	b.Show(b.url+hash, "document.documentElement?.dataset.ready")
	if got := b.Text("document.documentElement.dataset.ready"); got != "1" {
		b.t.Fatalf("the page is not shown (%q): %s; %s", got, b.Text("document.body.innerText"), b.Errors)
	}
	b.settled()
}

// settled waits until no request is under way.
func (b *viewPage) settled() { b.t.Helper(); b.Until("!candid.busy()") }

// quiet fails the test if the page sent a request to any other server, or logged an error.
func (b *viewPage) quiet() {
	b.t.Helper()
	for _, r := range b.Requests {
		if !strings.HasPrefix(r, b.url) && r != "about:blank" {
			b.t.Errorf("the page asked for %s", r)
		}
	}
	for _, e := range b.Errors {
		if strings.Contains(e, "status of 409 (Conflict)") {
			continue // a recording has grown while the page asked; it asks again
		}
		b.t.Errorf("the page complained: %s", e)
	}
	if got := b.Text("document.querySelector('.alert').textContent"); got != "" {
		b.t.Errorf("the page says %q", got)
	}
}

// drag moves the mouse over an element, with the button down, from one share of its width to
// another, at a share of its height.
func (b *viewPage) drag(selector string, from, to, height float64) {
	b.t.Helper()
	var box struct{ X, Y, W, H float64 }
	raw, _ := json.Marshal(selector)
	b.Eval(fmt.Sprintf("(() => { const r = document.querySelector(%s).getBoundingClientRect(); return {x: r.x, y: r.y, w: r.width, h: r.height}; })()", raw), &box)
	at := func(kind string, share float64, buttons int) {
		b.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": box.X + share*box.W, "y": box.Y + height*box.H, "button": "left", "buttons": buttons, "clickCount": 1}, nil)
	}
	at("mousePressed", from, 1)
	at("mouseMoved", (from+to)/2, 1)
	at("mouseMoved", to, 1)
	at("mouseReleased", to, 0)
	b.settled()
}

type pageCount struct{ Samples, Weight float64 }

type pageMethod struct {
	Name, Module, Kind                string
	Self, Total, SelfSamples, Samples float64
}

// same compares every number of the page's method list, and its totals, with what `candid report
// --json` says of the same filter.
func (b *viewPage) same(what string, f profile.Filter) *report.Report {
	b.t.Helper()
	return b.sameAs(b.r.p, what, f)
}

// sameAs is same for a report of another recording.
func (b *viewPage) sameAs(p *profile.Profile, what string, f profile.Filter) *report.Report {
	b.t.Helper()
	sel := p.Select(f)
	rep := report.Make(sel, report.Options{Filter: f})
	var sums struct {
		All, Chosen pageCount
		Quality     report.Quality
	}
	b.Eval("(() => { const c = candid.chosen(); return {all: c.all, chosen: c.chosen, quality: {...c.quality, reasons: {}}}; })()", &sums)
	count := func(c report.Count) pageCount { return pageCount{float64(c.Samples), float64(c.Weight)} }
	if sums.All != count(rep.All) || sums.Chosen != count(rep.Shown) {
		b.t.Errorf("%s: the page has %+v of %+v, the report %+v of %+v", what, sums.Chosen, sums.All, rep.Shown, rep.All)
	}
	if q := rep.Quality; sums.Quality.Complete != q.Complete || sums.Quality.Heuristic != q.Heuristic || sums.Quality.Broken != q.Broken || sums.Quality.Truncated != q.Truncated || sums.Quality.Stitched != q.Stitched {
		b.t.Errorf("%s: the page has quality %+v, the report %+v", what, sums.Quality, q)
	}
	want := map[string]pageMethod{}
	for i, m := range sel.List() {
		row := rep.Methods[i]
		name, module := flame.Visible(sel.Func(m.Method).Name), flame.Visible(sel.Func(m.Method).Module)
		want[name+"\x00"+module] = pageMethod{name, module, row.Kind, float64(row.Self.Weight), float64(row.Total.Weight), float64(row.Self.Samples), float64(row.Total.Samples)}
	}
	var got []pageMethod
	b.Eval("candid.methods()", &got)
	wrong := 0
	for _, m := range got {
		w := want[m.Name+"\x00"+m.Module]
		if m != w {
			if wrong++; wrong < 4 {
				b.t.Errorf("%s: the page has %+v, the report %+v", what, m, w)
			}
		}
	}
	if len(got) != len(want) {
		b.t.Errorf("%s: the page has %d methods, the report %d", what, len(got), len(want))
	}
	return rep
}

// chips returns the texts of the filters.
func (b *viewPage) chips() (list []string) {
	b.t.Helper()
	b.Eval("[...document.querySelectorAll('.chip .text')].map(e => e.textContent)", &list)
	return list
}

func TestPageNumbers(t *testing.T) {
	t.Parallel()
	r := busy(t, 4000, 40_000)
	s := served(t, r)
	b := openView(t, s)
	for _, c := range questions(r) {
		if c.name == "many" {
			c.ask.Del("split")
			c.ask.Set("split", "thread")
		}
		b.open("#" + c.ask.Encode())
		b.same(c.name, c.filter)
	}
	b.quiet()
}

// TestPageBrush selects a range of time with the mouse: every number becomes that of `candid report
// --from --to`, and returns when the chip is removed.
func TestPageBrush(t *testing.T) {
	t.Parallel()
	r := busy(t, 2000, 20_000)
	b := openView(t, served(t, r))
	b.open("#tab=methods")
	all := b.same("before", profile.Filter{})
	chosen := func() (f profile.Filter) {
		t.Helper()
		var st struct{ From, To int64 }
		b.Eval("({from: candid.state().from, to: candid.state().to})", &st)
		return profile.Filter{From: time.Duration(st.From), To: time.Duration(st.To)}
	}
	b.drag(".strip", 0.25, 0.5, 0.4)
	f := chosen()
	end := float64(r.end)
	if from, to := float64(f.From)/end, float64(f.To)/end; from < 0.24 || from > 0.26 || to < 0.49 || to > 0.51 {
		t.Errorf("a drag from 25%% to 50%% chose %v to %v", from, to)
	}
	rep := b.same("strip", f)
	if rep.Shown.Samples == 0 || rep.Shown.Samples > all.Shown.Samples/3 {
		t.Errorf("a quarter of the time has %d of %d samples", rep.Shown.Samples, all.Shown.Samples)
	}
	if text := b.Text("document.querySelector('.shown').textContent"); !strings.Contains(text, "Shown: ") {
		t.Errorf("the page says %q", text)
	}
	// The rows of the table are those numbers.
	first := b.Text("document.querySelector('.grid-row .name').textContent")
	if want := flame.Visible(rep.Methods[0].Name); first != want {
		t.Errorf("the hottest method is %q, the report says %q", first, want)
	}
	if hash := b.Text("location.hash"); !strings.Contains(hash, fmt.Sprintf("from=%d", int64(f.From))) {
		t.Errorf("the address %q does not hold the stretch of time", hash)
	}
	if got := b.chips(); len(got) != 1 {
		t.Errorf("filters are %q", got)
	}
	b.Eval("document.querySelector('.chip button').click()", nil)
	b.Until("candid.state().to === 0 && !candid.busy()")
	b.same("after", profile.Filter{})

	// The same over the lanes of the timeline, whose left part is names.
	b.open("#tab=timeline")
	b.Until("document.querySelector('.lanes canvas').clientHeight > 100")
	b.drag(".lanes canvas", 0.4, 0.8, 0.5)
	f = chosen()
	if f.To <= f.From {
		t.Fatalf("a drag over the lanes chose %v to %v", f.From, f.To)
	}
	b.same("lanes", f)
	b.open("#tab=heatmap")
	b.Until("document.querySelector('.heatmap .pane-title').textContent !== ''")
	b.drag(".heatmap canvas", 0.1, 0.3, 0.5)
	f = chosen()
	if f.To <= f.From {
		t.Fatalf("a drag over the heatmap chose %v to %v", f.From, f.To)
	}
	b.same("heatmap", f)
	b.quiet()
}

// TestPageTabs opens every tab and looks for what it must show.
func TestPageTabs(t *testing.T) {
	t.Parallel()
	r := busy(t, 2000, 20_000)
	b := openView(t, served(t, r))
	sel := r.p.Select(profile.Filter{})
	hottest := flame.Visible(sel.Func(sel.List()[0].Method).Name)
	for tab, words := range map[string]string{
		"tree": "start_thread", "methods": hottest, "callers": hottest, "timeline": "threads with samples", "heatmap": "Each column is",
		"threads": "http-nio-8080-exec-", "events": "alloc", "about": "perf+bpf", "flame": "all",
	} {
		b.open("#tab=" + tab)
		raw, _ := json.Marshal(words)
		b.Until(fmt.Sprintf("document.querySelector('main > .pane:not([hidden])').innerText.includes(%s)", raw))
		if got := b.Text("document.querySelector('[role=tab][aria-selected=true]').id"); got != "tab-"+tab {
			t.Errorf("tab %s: %s is chosen", tab, got)
		}
		// Everything that can be pressed has a name.
		var nameless int
		b.Eval("[...document.querySelectorAll('button, input, select, [tabindex=\"0\"], [role=grid], [role=treegrid]')].filter(e => !e.closest('[hidden]') && !(e.textContent.trim() || e.ariaLabel || e.title || e.classList.contains('grid-scroll'))).length", &nameless)
		if nameless != 0 {
			t.Errorf("tab %s: %d controls have no name", tab, nameless)
		}
	}
	if about := b.Text("(location.hash = 'tab=about', '')"); about != "" {
		t.Fatal(about)
	}
	b.Until("document.querySelector('#pane-about:not([hidden])')?.innerText.includes('kernel symbols are hidden')")
	text := b.Text("document.querySelector('#pane-about').innerText")
	for _, want := range []string{"hotspot 17.0.15", "12 samples were lost", "DebugNonSafepoints", "99 Hz"} {
		if !strings.Contains(text, want) {
			t.Errorf("about this recording lacks %q", want)
		}
	}
	// The flame graph is where it was after another tab was shown: its root is visible.
	b.Eval("candid.set({tab: 'flame'})", nil)
	const down = "(e => e.clientHeight > 100 && e.scrollHeight > e.clientHeight && e.scrollHeight - e.scrollTop - e.clientHeight <= 4 * 24)(document.querySelector('#pane-flame .chart'))"
	b.Until(down)
	for range 3 {
		b.Eval("candid.set({tab: 'about'})", nil)
		b.Until("document.querySelector('#pane-flame').hidden")
		b.Eval("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(0))))", nil)
		b.Eval("candid.set({tab: 'flame'})", nil)
		b.Eval("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(0))))", nil)
		b.Until(down)
	}
	// The matches of a search can be kept or left out, if there are any.
	for _, tab := range []string{"flame", "methods"} {
		for query, offered := range map[string]bool{"java": true, "nothing is called so": false} {
			b.Eval(fmt.Sprintf("candid.set({tab: '%s', query: '%s'})", tab, query), nil)
			b.Until(fmt.Sprintf("document.querySelector('#found').textContent %s 'no match' && [...document.querySelectorAll('.offers')].some(e => e.getClientRects().length) === %v", map[bool]string{true: "!==", false: "==="}[offered], offered))
		}
	}
	b.quiet()
}

// TestPageFirstEvent opens a recording whose first event has no samples: the page shows the first
// event that has some, and the other one if its address asks for it.
func TestPageFirstEvent(t *testing.T) {
	t.Parallel()
	p := profiletest.Later(profiletest.Server(500, 2000, 20))
	r, err := Open("later.jfr", p)
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	for hash, event := range map[string]int{"": 1, "#event=2": 2, "#event=0": 0} {
		b.open(hash)
		b.same(hash, profile.Filter{Event: event})
		b.usual(hash)
		if got := b.Text("document.querySelector('select[aria-label=Event]').selectedOptions[0].text"); got != p.Events[event].Name {
			t.Errorf("%q: the page shows %s, want %s", hash, got, p.Events[event].Name)
		}
		if got := b.Text("location.hash"); got != hash {
			t.Errorf("%q: the address became %q", hash, got)
		}
		if got, want := Address(p, profile.Filter{Event: event}, false), hash; got != want {
			t.Errorf("event %d is at %q, want %q", event, got, want)
		}
	}
	b.quiet()
}

// TestPageScrolls scrolls a long table in small and in large steps: the visible rows are those of
// the position, in their order, and their contents are right.
func TestPageScrolls(t *testing.T) {
	t.Parallel()
	r, err := Open("wide.jfr", profiletest.Wide(5000, 50, 20_000))
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	b.open("#tab=methods")
	b.Until("document.querySelectorAll('#pane-methods .grid-row').length > 10")
	const rows = "[...document.querySelectorAll('#pane-methods .grid-row')].map(e => [e.dataset.row, e.querySelector('.name').textContent, e.textContent, e.querySelector('.gauge').style.width, e.ariaRowIndex, e.ariaSelected].join(' | '))"
	// at returns the rows at a scroll position, when they are there.
	at := func(top int) (list []string) {
		t.Helper()
		b.Eval(fmt.Sprintf("document.querySelector('#pane-methods .grid-scroll').scrollTop = %d", top), nil)
		b.Until(fmt.Sprintf("(e => { const h = e.getBoundingClientRect(), all = [...e.querySelectorAll('.grid-row')].map(r => r.getBoundingClientRect()); return Math.abs(e.scrollTop - %d) <= 1 && all[0].top <= h.top && all[all.length - 1].bottom >= h.bottom && all.every((r, i) => i === 0 || Math.abs(r.top - all[i-1].bottom) < 1); })(document.querySelector('#pane-methods .grid-scroll'))", top))
		b.Eval(rows, &list)
		return list
	}
	whole := map[string]string{} // by row
	for top, step := 0, 240; top < 12_000; top += step {
		if top == 1200 {
			step = 600 // some rows stay
		}
		for _, row := range at(top) {
			n, _, _ := strings.Cut(row, " |")
			if before, ok := whole[n]; ok && before != row {
				t.Fatalf("row %s was %q and is %q", n, before, row)
			}
			whole[n] = row
		}
	}
	if len(whole) < 500 {
		t.Fatalf("%d rows were seen", len(whole))
	}
	for _, top := range []int{0, 9000, 2400, 5010, 90, 11_000} {
		for i, row := range at(top) {
			n, _, _ := strings.Cut(row, " |")
			if want := whole[n]; row != want {
				t.Fatalf("after a jump to %d, place %d: row %s is %q, it was %q", top, i, n, row, want)
			}
		}
	}
	// A search leaves other rows, in the same positions, and when it ends the first ones are back.
	b.Eval("candid.set({query: 'method123'})", nil)
	b.Until("document.querySelector('#pane-methods .grid-row .name')?.textContent.includes('method123')")
	b.Eval("candid.set({query: ''})", nil)
	b.Until("document.querySelectorAll('#pane-methods .grid-row').length > 10")
	for _, row := range at(9000) {
		n, _, _ := strings.Cut(row, " |")
		if want := whole[n]; row != want {
			t.Fatalf("after a search row %s is %q, it was %q", n, row, want)
		}
	}
	b.quiet()
}

// TestPageTrees compares the call tree and the callers with those of a report.
func TestPageTrees(t *testing.T) {
	t.Parallel()
	r := busy(t, 1500, 10_000)
	b := openView(t, served(t, r))
	b.open("#tab=tree")
	rows := func(pane string) map[string][2]string {
		t.Helper()
		var list [][3]string
		b.Eval(fmt.Sprintf("[...document.querySelectorAll('#pane-%s .grid-row')].map(e => { const c = [...e.children]; return [c[0].querySelector('.name').textContent, c[c.length-2].textContent, c[c.length-1].textContent]; })", pane), &list)
		out := map[string][2]string{}
		for _, l := range list {
			if _, twice := out[l[0]]; !twice {
				out[l[0]] = [2]string{l[1], l[2]}
			}
		}
		return out
	}
	// Stacks that are cut have roots of their own on the page, but are among the others in the
	// report, so only whole ones are compared.
	samples := map[string]uint64{}
	for i := range r.p.Samples {
		s := &r.p.Samples[i]
		if s.Event != 0 || s.End != 0 || s.Node == profile.RootNode {
			continue
		}
		n := s.Node
		for r.p.Nodes[n].Parent != profile.RootNode {
			n = r.p.Nodes[n].Parent
		}
		samples[flame.Visible(r.p.Funcs[r.p.Frames[r.p.Nodes[n].Frame].Func].Name)]++
	}
	got := rows("tree")
	for name, n := range samples {
		if got[name][1] != grouped(n) {
			t.Errorf("the call tree has %q samples under %s, want %d", got[name][1], name, n)
		}
	}
	if len(samples) == 0 {
		t.Fatal("no whole stack")
	}

	// Callers of the hottest method: the first row is the method with all of its total, counted
	// once per stack; below it are its callers.
	sel := r.p.Select(profile.Filter{})
	top := sel.List()[0]
	name := flame.Visible(sel.Func(top.Method).Name)
	raw, _ := json.Marshal(name)
	b.Eval(fmt.Sprintf("candid.set({tab: 'callers', of: %s})", raw), nil)
	b.Until(fmt.Sprintf("document.querySelector('#pane-callers .grid-row .name')?.textContent === %s", raw))
	if got := rows("callers")[name]; got[1] != grouped(top.Total.Samples) {
		t.Errorf("callers of %s begin with %q samples, want %d", name, got[1], top.Total.Samples)
	}
	b.quiet()
}

// quoted returns a text as a literal in a script.
func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func grouped(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// TestPageHostile has names full of markup and control characters everywhere.
func TestPageHostile(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(1500, 8000, 30)
	p.Meta.Command, p.Meta.Host, p.Meta.Engine = profiletest.Hostile[0], profiletest.Hostile[1], profiletest.Hostile[2]
	p.Meta.Notes = profiletest.Hostile
	p.Processes[0].Command, p.Processes[0].Runtime = profiletest.Hostile[1], profiletest.Hostile[2]
	for i := range p.Threads {
		p.Threads[i].Name, p.Threads[i].Kind = profiletest.Hostile[i%len(profiletest.Hostile)], profiletest.Hostile[0]
	}
	p.Events[1].Name, p.Events[1].Unit = profiletest.Hostile[1], profiletest.Hostile[0]
	p.Syscalls = []string{"", profiletest.Hostile[1]}
	for i := range p.Samples {
		p.Samples[i].Syscall = 1
	}
	r, err := Open(profiletest.Hostile[1]+".jfr", p)
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r, r))
	for _, tab := range []string{"flame", "tree", "methods", "callers", "timeline", "heatmap", "threads", "events", "about"} {
		b.open("#event=1&tab=" + tab)
		for _, name := range profiletest.Hostile {
			shown := flame.Visible(name)
			raw, _ := json.Marshal(shown)
			if tab == "methods" {
				b.Eval(fmt.Sprintf("candid.set({query: '', focus: ['^' + %s.replace(/[\\\\.+*?()|[\\]{}^$]/g, '\\\\$&') + '$']})", raw), nil)
				b.settled()
				if got := b.chips(); len(got) != 1 || got[0] != shown {
					t.Errorf("the filter for %q shows as %q", shown, got)
				}
				var n float64
				b.Eval("candid.chosen().chosen.samples", &n)
				if n == 0 {
					t.Errorf("focus on %q leaves nothing", shown)
				}
				b.Eval("candid.set({focus: []})", nil)
				b.settled()
			}
		}
		var bad int
		b.Eval("document.querySelectorAll('img, iframe, object, script:not([src=\"view.js\"]), link:not([rel=icon]):not([href=\"view.css\"])').length", &bad)
		if bad != 0 {
			t.Errorf("tab %s: a name became %d elements", tab, bad)
		}
		if got := b.Text("document.title"); got == "owned" {
			t.Errorf("tab %s: a name ran", tab)
		}
		var control bool
		b.Eval(`/[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u200b]/.test(document.body.innerText)`, &control)
		if control {
			t.Errorf("tab %s shows control characters", tab)
		}
	}
	b.quiet()
}

// TestPageKeyboard goes through the page without a pointer.
func TestPageKeyboard(t *testing.T) {
	t.Parallel()
	r := busy(t, 1500, 10_000)
	b := openView(t, served(t, r))
	b.open("")
	b.Key("3")
	b.Until("candid.state().tab === 'methods' && !candid.busy()")
	b.Key("ArrowDown")
	b.Key("m")
	b.Until("!document.querySelector('.menu[aria-label=\"With this method\"]').hidden")
	name := b.Text("document.querySelector('.menu-title').textContent")
	b.Key("Enter") // focus
	b.Until("candid.state().focus.length === 1 && !candid.busy()")
	if got := b.chips(); len(got) != 1 || got[0] != name {
		t.Errorf("filters are %q, want %q", got, name)
	}
	b.Key("/")
	for _, k := range "HashMap" {
		b.Key(string(k))
	}
	b.Key("Enter")
	b.Until("candid.state().query === 'HashMap'")
	b.Key("Escape")
	b.Until("candid.state().query === ''")
	b.Key("5")
	b.Until("candid.state().tab === 'timeline'")
	b.Key("ArrowRight")
	b.Until("candid.state().to > 0 && !candid.busy()")
	b.Key("Escape")
	b.Until("candid.state().to === 0 && !candid.busy()")
	b.Key("d")
	b.Until("document.documentElement.dataset.theme === 'dark'")
	b.Key("?")
	b.Until("document.querySelector('dialog[open]')")
	b.quiet()
}

// number0 returns a number as a literal in a script.
func number0(n int) string { return fmt.Sprint(n) }

// TestPageSameNumberAndName tells apart two threads that have the same number and name, and no
// others.
func TestPageSameNumberAndName(t *testing.T) {
	t.Parallel()
	r, err := Open("again.jfr", profiletest.Again())
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	b.open("#tab=threads")
	b.Until("document.querySelectorAll('#pane-threads .grid-row').length === 3")
	var names []string
	b.Eval("[...document.querySelectorAll('#pane-threads .grid-row')].map(e => e.children[4].firstChild.firstChild.textContent + '|' + e.children[3].textContent)", &names)
	slices.Sort(names)
	if want := []string{"pool-1 · from 1.00 s|2", "pool-1 · from 5.00 s|3", "pool-1|1"}; !slices.Equal(names, want) {
		t.Errorf("threads are %q, want %q", names, want)
	}
	b.quiet()
}
