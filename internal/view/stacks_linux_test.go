package view

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// stackOf returns a sample's frames, outermost first.
func stackOf(p *profile.Profile, s *profile.Sample) []profile.Frame {
	var out []profile.Frame
	for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
		out = append(out, p.Frames[p.Nodes[n].Frame])
	}
	slices.Reverse(out)
	return out
}

// restacked returns p with each sample's frames changed, one sample after the other: change may
// return functions that are not in p, by name.
func restacked(p *profile.Profile, change func(stack []profile.Frame) (frames []profile.Frame, names map[int]string)) *profile.Profile {
	b := profile.NewBuilder()
	out := b.Profile()
	out.Meta, out.Events, out.Processes, out.Syscalls = p.Meta, p.Events, p.Processes, p.Syscalls
	for _, t := range p.Threads {
		b.NewThread(t.PID, t.TID, t.Name)
	}
	for i := range p.Samples {
		s := p.Samples[i]
		frames, names := change(stackOf(p, &s))
		node := uint32(profile.RootNode)
		for k, f := range frames {
			if name, ok := names[k]; ok {
				f = profile.Frame{Func: b.Func(profile.Func{Name: name}), BCI: -1, Kind: f.Kind}
			} else {
				f.Func = b.Func(p.Funcs[f.Func])
			}
			node = b.Node(node, b.Frame(f))
		}
		s.Node = node
		b.Add(s)
	}
	return b.Profile()
}

// TestPageStacks shows stacks other than they were taken, and compares every number with that of a
// report of a recording whose stacks were changed by hand.
func TestPageStacks(t *testing.T) {
	t.Parallel()
	r := busy(t, 2500, 15_000)
	p := r.p
	name := func(f profile.Frame) string { return p.Funcs[f.Func].Name }
	java := regexp.MustCompile(`^java\.util\.`)
	list := p.Select(profile.Filter{}).List()
	sel := p.Select(profile.Filter{})
	merged := "" // the method with the largest total that calls others
	for _, m := range list {
		if m.Total.Samples > 3*m.Self.Samples && m.Self.Samples > 0 && strings.HasPrefix(sel.Func(m.Method).Name, "com.") {
			merged = sel.Func(m.Method).Name
			break
		}
	}
	cases := []struct {
		what, chip string
		ask        url.Values
		change     func(stack []profile.Frame) ([]profile.Frame, map[int]string)
	}{
		{"merge", "merged", url.Values{"merge": {"^" + regexp.QuoteMeta(merged) + "$"}}, func(stack []profile.Frame) (out []profile.Frame, _ map[int]string) {
			for _, f := range stack {
				if name(f) != merged {
					out = append(out, f)
				}
			}
			return out, nil
		}},
		{"collapse", "one frame", url.Values{"collapse": {"package java.util"}}, func(stack []profile.Frame) (out []profile.Frame, names map[int]string) {
			names = map[int]string{}
			for i, f := range stack {
				in := java.MatchString(name(f))
				if in && i > 0 && java.MatchString(name(stack[i-1])) {
					continue
				}
				if in {
					names[len(out)] = "java.util.*"
				}
				out = append(out, f)
			}
			return out, names
		}},
		{"recursion", "recursion", url.Values{"recursion": {"."}}, func(stack []profile.Frame) (out []profile.Frame, _ map[int]string) {
			for _, f := range stack {
				if k := slices.IndexFunc(out, func(o profile.Frame) bool { return o.Func == f.Func }); k >= 0 {
					out = out[:k+1]
				} else {
					out = append(out, f)
				}
			}
			return out, nil
		}},
	}
	b := openView(t, served(t, r))
	for _, c := range cases {
		want := restacked(p, c.change)
		b.open("#tab=methods&" + c.ask.Encode())
		b.sameAs(want, c.what, profile.Filter{})
		b.Eval("candid.set({states: ['running'], from: 1000000})", nil)
		b.settled()
		f := profile.Filter{From: time.Millisecond, States: profile.StateSet(0).With(profile.StateRunning)}
		b.sameAs(want, c.what+" of a part", f)
		b.Eval("candid.set({split: 'thread'})", nil)
		b.settled()
		b.sameAs(want, c.what+" by thread", f)
		b.Eval("candid.set({split: 'none', states: [], from: 0})", nil)
		b.settled()
		// A saved file holds what is shown.
		q, err := r.query(c.ask)
		if err != nil {
			t.Fatal(err)
		}
		part, err := r.part(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		a, w := totals(part), totals(want)
		if len(a) != len(w) {
			t.Errorf("%s: the file has %d methods, want %d", c.what, len(a), len(w))
		}
		for n, v := range w {
			if a[n] != v {
				t.Errorf("%s: the file has %v of %s, want %v", c.what, a[n], n, v)
			}
		}
		// The chip removes it.
		if what := b.Text("document.querySelector('.chip .what').textContent"); what != c.chip {
			t.Errorf("%s: the chip says %q", c.what, what)
		}
		b.Eval("document.querySelector('.chip button').click()", nil)
		b.Until("document.querySelectorAll('.chip').length === 0 && !candid.busy()")
		b.same(c.what+" taken away", profile.Filter{})
	}
	// From the menu of a row, while zoomed: the frame stays.
	b.open("#tab=flame")
	b.Eval("(() => { for (let i = 1; i < candid.nodes(); i++) if (candid.name(i) === 'java.lang.Thread.run') { candid.set({zoom: i}); break; } })()", nil)
	name0 := b.Text("candid.name(candid.state().zoom)")
	b.Eval("candid.set({merge: ['^'+"+quoted(regexp.QuoteMeta(merged))+"+'$']})", nil)
	b.Until("candid.state().merge.length === 1 && !candid.busy()")
	if got := b.Text("candid.name(candid.state().zoom)"); got != name0 {
		t.Errorf("it is zoomed to %q, before to %q", got, name0)
	}
	if res, body := get(t, "GET", b.url+"0/counts?collapse=nonsense", ""); res.StatusCode != 400 {
		t.Errorf("nonsense is answered: %s %s", res.Status, body)
	}
	b.quiet()
}

// totals returns self and total of each method, by name.
func totals(p *profile.Profile) map[string][2]uint64 {
	out := map[string][2]uint64{}
	s := p.Select(profile.Filter{})
	for _, m := range s.List() {
		f := s.Func(m.Method)
		out[flame.Visible(f.Name)+"\x00"+flame.Visible(f.Module)] = [2]uint64{m.Self.Weight, m.Total.Weight}
	}
	return out
}

// TestPageStretches compares two ranges of time of one recording.
func TestPageStretches(t *testing.T) {
	t.Parallel()
	r := busy(t, 2000, 15_000)
	b := openView(t, served(t, r))
	b.open("#tab=methods")
	b.drag(".strip", 0.1, 0.3, 0.4)
	var st struct{ From, To int64 }
	b.Eval("({from: candid.state().from, to: candid.state().to})", &st)
	first := profile.Filter{From: time.Duration(st.From), To: time.Duration(st.To)}
	b.Eval("[...document.querySelectorAll('.offers button')].find(e => e.textContent.startsWith('Compare')).click()", nil)
	b.Until("candid.state().base && !candid.busy() && candid.state().to === 0")
	b.drag(".strip", 0.5, 0.9, 0.4)
	b.Until("candid.state().to > 0 && !candid.busy()")
	b.Eval("({from: candid.state().from, to: candid.state().to})", &st)
	second := profile.Filter{From: time.Duration(st.From), To: time.Duration(st.To)}
	check := func(what string, before, after profile.Filter) {
		t.Helper()
		b.same(what, after)
		var got struct{ Methods []pageMethod }
		b.Eval("candid.before()", &got)
		want := totals(profile.Apply(r.p, before))
		if len(got.Methods) != len(want) {
			t.Errorf("%s: before has %d methods, want %d", what, len(got.Methods), len(want))
		}
		for _, m := range got.Methods {
			if w := want[m.Name+"\x00"+m.Module]; float64(w[0]) != m.Self || float64(w[1]) != m.Total {
				t.Errorf("%s: before has %+v, want %v", what, m, w)
			}
		}
	}
	check("two stretches", first, second)
	if got := b.chips(); len(got) != 2 {
		t.Errorf("the chips are %q", got)
	}
	hash := b.Text("location.hash")
	b.Eval("[...document.querySelectorAll('.offers button')].find(e => e.textContent === 'Swap').click()", nil)
	b.Until("candid.state().from === " + number0(int(first.From)) + " && !candid.busy()")
	check("swapped", second, first)
	// Each tab shows the comparison.
	for tab, what := range map[string]string{
		"methods": "Self ±", "tree": "Total ±", "callers": "Total ±", "threads": "±", "events": "Before", "about": "compared with", "flame": "blue: less",
	} {
		b.Eval("candid.set({tab: '"+tab+"'})", nil)
		b.settled()
		b.Until("document.querySelector('main > .pane:not([hidden])').innerText.includes(" + quoted(what) + ")")
	}
	// A sandwich is as wide as the side of the comparison that is asked for.
	var most struct{ Methods []pageMethod }
	b.Eval("(async () => ({methods: [...await candid.methods()].sort((a, b) => b.total - a.total)}))()", &most)
	name := most.Methods[0].Name
	b.Eval("candid.set({tab: 'callers', sandwich: true, of: "+quoted(name)+"})", nil)
	b.settled()
	for side, p := range map[string]*profile.Profile{"true": profile.Apply(r.p, second), "false": profile.Apply(r.p, first)} {
		b.Eval("candid.set({before: "+side+"})", nil)
		b.settled()
		var got []struct{ Total float64 }
		b.Eval("candid.sandwich()", &got)
		want := totals(p)[name+"\x00"+most.Methods[0].Module][1]
		if want == 0 || got[0].Total != float64(want) || got[1].Total != float64(want) {
			t.Errorf("before %s: the sandwich of %s has %v, want %d", side, name, got, want)
		}
	}
	if text := b.Text("document.querySelector('.sandwich-line').innerText"); !strings.Contains(text, " before, ") {
		t.Errorf("under the sandwich stands %q", text)
	}
	b.Eval("candid.set({before: false, sandwich: false, of: ''})", nil)
	b.settled()
	for _, tab := range []string{"timeline", "heatmap"} {
		b.Eval("candid.set({tab: '"+tab+"'})", nil)
		b.settled()
	}
	// The address keeps it.
	b.open(hash)
	check("from the address", first, second)
	b.Eval("document.querySelector('.chip button').click()", nil)
	b.Until("!candid.state().base && !candid.busy()")
	b.same("one stretch", second)
	b.quiet()
}

// TestPageSandwich compares both halves with sums over the samples.
func TestPageSandwich(t *testing.T) {
	t.Parallel()
	r := busy(t, 2500, 15_000)
	p := r.p
	sel := p.Select(profile.Filter{})
	b := openView(t, served(t, r))
	b.open("#tab=callers")
	tried := 0
	for _, m := range sel.List()[:20] {
		name := sel.Func(m.Method).Name
		want := [2]map[string]float64{{}, {}}
		total := 0.0
		for i := range p.Samples {
			s := &p.Samples[i]
			if s.Event != 0 || s.State != profile.StateRunning {
				continue
			}
			stack := stackOf(p, s)
			k := slices.IndexFunc(stack, func(f profile.Frame) bool { return p.Funcs[f.Func].Name == name })
			if k < 0 {
				continue
			}
			total += float64(s.Weight)
			if k > 0 {
				want[0][flame.Visible(p.Funcs[stack[k-1].Func].Name)] += float64(s.Weight)
			} else if s.End != 0 {
				want[0][flame.EndName(s.End)] += float64(s.Weight)
			}
			if k+1 < len(stack) {
				want[1][flame.Visible(p.Funcs[stack[k+1].Func].Name)] += float64(s.Weight)
			}
		}
		b.Eval("candid.set({of: "+quoted(flame.Visible(name))+", sandwich: true, states: ['running']})", nil)
		b.settled()
		b.Until("!document.querySelector('.sandwich').hidden")
		var got []struct {
			Total, Narrow float64
			Next          map[string]float64
		}
		b.Eval("candid.sandwich()", &got)
		for k, half := range got {
			if half.Total != total {
				t.Errorf("%s, half %d: %v in all, want %v", name, k, half.Total, total)
			}
			// Nodes narrower than half a pixel of the window are shown as one.
			narrow := 0.0
			for name, v := range want[k] {
				if half.Next[name] == 0 && v < total/1000 {
					narrow += v
					delete(want[k], name)
				}
			}
			if fmt.Sprint(half.Next) != fmt.Sprint(want[k]) || half.Narrow != narrow {
				t.Errorf("%s, half %d: %v and %v narrow, want %v and %v", name, k, half.Next, half.Narrow, want[k], narrow)
			}
		}
		if len(want[0]) > 0 && len(want[1]) > 0 {
			tried++
		}
	}
	if tried < 5 {
		t.Errorf("%d methods have callers and callees", tried)
	}
	// Zooming in shows what was too narrow before; the rest stays as it is.
	b.Eval("(async () => candid.set({of: (await candid.methods()).reduce((a, b) => b.total > a.total ? b : a).name, states: []}))()", nil)
	b.settled()
	type picture struct {
		Total, Narrow float64
		Nodes         int
		Next          map[string]float64
	}
	var before, after []picture
	b.Eval("candid.sandwich()", &before)
	b.Eval("document.querySelectorAll('.sandwich canvas')[1].focus()", nil)
	for range 3 {
		b.Key("+")
	}
	b.Until(fmt.Sprintf("!candid.busy() && candid.sandwich()[1].nodes > %d", before[1].Nodes))
	b.Eval("candid.sandwich()", &after)
	sum := func(p picture) float64 {
		s := p.Narrow
		for _, v := range p.Next {
			s += v
		}
		return s
	}
	if after[1].Total != before[1].Total || sum(after[1]) != sum(before[1]) || after[0].Nodes != before[0].Nodes {
		t.Errorf("zoomed it is %+v, before %+v", after, before)
	}
	b.Key("Escape")
	b.Until("!candid.busy()")
	b.quiet()
}

// TestPageHeatmap looks at three hours, and at 20 ms of them.
func TestPageHeatmap(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(1000, 30_000, 20)
	scale := uint64(3*time.Hour) / p.Samples[len(p.Samples)-1].Time
	for i := range p.Samples {
		p.Samples[i].Time *= scale
	}
	p.Meta.Duration = 3 * time.Hour
	r, err := Open("hours.jfr", p)
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	b.open("#tab=heatmap")
	b.Until("candid.heatmap().columns > 0")
	type picture struct{ Begin, Cell, Columns, Sum float64 }
	check := func(what string) picture {
		t.Helper()
		var got picture
		b.Eval("candid.heatmap()", &got)
		f := profile.Filter{From: time.Duration(got.Begin), To: time.Duration(got.Begin + got.Columns*50*got.Cell)}
		want := float64(p.Select(f).Chosen.Weight)
		if d := got.Sum - want; d > want/1e4 || d < -want/1e4 || want == 0 {
			t.Errorf("%s: the picture from %v to %v has %v, the recording %v", what, f.From, f.To, got.Sum, want)
		}
		return got
	}
	all := check("all")
	if got := all.Begin + all.Columns*50*all.Cell; got < float64(3*time.Hour) {
		t.Errorf("three hours are shown up to %v", time.Duration(got))
	}
	b.Eval("document.querySelector('.heatmap canvas').focus()", nil)
	for range 20 {
		b.Key("+")
	}
	b.Until("candid.heatmap().cell === 20e6 && candid.heatmap().columns <= 12")
	fine := check("20 ms")
	b.Key(">")
	b.Until(fmt.Sprintf("candid.heatmap().begin > %v", fine.Begin))
	check("later")
	// Cells are chosen exactly.
	b.drag(".heatmap canvas", 0.2, 0.6, 0.5)
	b.Until("candid.state().to > 0 && !candid.busy()")
	var st struct{ From, To int64 }
	b.Eval("({from: candid.state().from, to: candid.state().to})", &st)
	if st.From%20e6 != 0 || st.To%20e6 != 0 {
		t.Errorf("cells of 20 ms from %d to %d", st.From, st.To)
	}
	b.same("cells", profile.Filter{From: time.Duration(st.From), To: time.Duration(st.To)})
	b.Eval("[...document.querySelectorAll('.heatmap button')].find(e => e.textContent === 'Whole recording').click()", nil)
	b.Until(fmt.Sprintf("candid.heatmap().cell === %v", all.Cell))
	b.quiet()
}

// TestPageJumps goes from a row to every view, and copies.
func TestPageJumps(t *testing.T) {
	t.Parallel()
	r := busy(t, 2000, 15_000)
	b := openView(t, served(t, r))
	open := func(hash, pane string) string {
		t.Helper()
		b.open(hash)
		b.Until("document.querySelectorAll('#pane-" + pane + " .grid-row').length > 5")
		b.Eval("document.querySelector('#pane-"+pane+" .grid-scroll').focus()", nil)
		for range 3 {
			b.Key("ArrowDown")
		}
		b.Key("m")
		b.Until("!document.querySelector('.menu[aria-label=\"With this method\"]').hidden")
		return b.Text("document.querySelector('.menu-title').textContent")
	}
	press := func(label string) {
		t.Helper()
		b.Eval("[...document.querySelectorAll('.menu:not([hidden]) button')].find(e => e.textContent.startsWith("+quoted(label)+")).click()", nil)
		b.settled()
	}
	all := b.r.p.Select(profile.Filter{}).All
	for label, tab := range map[string]string{
		"Flame graph": "flame", "Call tree": "tree", "Methods": "methods", "Callers": "callers", "Callers and callees": "callers", "Timeline": "timeline", "Heatmap": "heatmap", "Threads": "threads",
	} {
		for _, from := range []string{"methods", "tree"} {
			if from == "tree" && label != "Flame graph" && label != "Call tree" {
				continue // it is the same menu
			}
			name := open("#tab="+from, from)
			press(label)
			b.Until("candid.state().tab === " + quoted(tab))
			switch label {
			case "Call tree":
				b.Until("document.querySelector('#pane-tree .grid-row.selected .name')?.textContent === " + quoted(name))
			case "Callers", "Callers and callees":
				b.Until("document.querySelector('#pane-callers .pane-title').textContent === " + quoted(name))
			case "Methods":
				b.Until("document.querySelector('#pane-methods .grid-row .name').textContent === " + quoted(name))
			case "Timeline", "Heatmap", "Threads":
				f := profile.Filter{Focus: regexp.MustCompile("^" + regexp.QuoteMeta(name) + "$")}
				if rep := b.same(label, f); rep.Shown.Samples == 0 {
					t.Errorf("%s: %s is in no stack", label, name)
				}
			case "Flame graph":
				b.Until("candid.name(candid.state().zoom) === " + quoted(name) + " || candid.matched()?.total > 0")
			}
		}
	}
	name := open("#tab=tree", "tree")
	press("Copy the stack")
	if got := strings.Split(b.Text("candid.copied()"), "\n"); got[0] != name || len(got) < 2 {
		t.Errorf("the copied stack is %q", got)
	}
	// A link brings back the view.
	b.open("#tab=methods&focus=HashMap&from=1000000")
	b.Eval("[...document.querySelectorAll('header button')].find(e => e.textContent === 'Copy link').click()", nil)
	link := b.Text("candid.copied()")
	f := profile.Filter{Focus: regexp.MustCompile("HashMap"), From: time.Millisecond}
	b.Show(link, "document.documentElement?.dataset.ready")
	b.settled()
	if rep := b.same("the link", f); rep.Shown.Samples == 0 || rep.Shown.Samples == all.Samples {
		t.Errorf("the link shows %d samples", rep.Shown.Samples)
	}
	// From a thread.
	b.open("#tab=threads")
	b.Until("document.querySelectorAll('#pane-threads .grid-row').length > 3")
	b.Eval("document.querySelector('#pane-threads .grid-scroll').focus()", nil)
	b.Key("ArrowDown")
	b.Key("m")
	b.Until("!document.querySelector('.menu[aria-label=\"With this method\"]').hidden")
	press("Methods")
	b.Until("candid.state().tab === 'methods' && candid.state().threads.length === 1")
	var threads []uint32
	b.Eval("candid.state().threads", &threads)
	b.same("a thread", profile.Filter{OneThread: &threads[0]})
	b.quiet()
}
