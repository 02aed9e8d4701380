package view

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/report"
)

// names adds up the threads of a report by name.
func names(p *profile.Profile, f profile.Filter) (map[string]report.Count, float64) {
	out := map[string]report.Count{}
	sum := 0.0
	for _, x := range report.Make(p.Select(f), report.Options{Filter: f}).Threads {
		c := out[flame.Visible(x.Name)]
		c.Samples += x.Self.Samples
		c.Weight += x.Self.Weight
		out[flame.Visible(x.Name)] = c
		sum += float64(x.Self.Weight)
	}
	return out, sum
}

// near reports whether two numbers differ by no more than summing in another order, and in fewer
// digits, does.
func near(a, b float64) bool { return math.Abs(a-b) <= 2e-5*max(math.Abs(a), math.Abs(b), 1e-9) }

// twoServers returns two recordings of one program. Each has threads and methods that the other
// lacks; the second has other numbers for its threads, and is shorter by the given time.
func twoServers(shorter time.Duration) (before, after *profile.Profile) {
	all := profiletest.Server(2500, 12_000, 30)
	all.Meta.Duration = time.Duration(all.Samples[len(all.Samples)-1].Time + 1)
	before = profile.Apply(all, profile.Filter{Ignore: regexp.MustCompile("NioEventLoop")})
	after = profile.Apply(all, profile.Filter{Ignore: regexp.MustCompile("OrderService"), To: all.Meta.Duration - shorter})
	after.Meta.Duration = all.Meta.Duration - shorter
	before.Meta.Duration = all.Meta.Duration
	for i := range after.Threads {
		after.Threads[i].TID += 1000
	}
	before.Meta.Command, after.Meta.Command = "java -jar old.jar", "java -jar new.jar"
	for i := range before.Threads {
		if before.Threads[i].Name == "http-nio-8080-exec-3" {
			before.Threads[i].Name = "only before"
		}
	}
	return before, after
}

// TestPairTabs compares what timeline, heatmap, threads, events and about show of two recordings
// with the report of each.
func TestPairTabs(t *testing.T) {
	t.Parallel()
	for _, shorter := range []time.Duration{0, 12 * time.Second} {
		before, after := twoServers(shorter)
		both := [2]*profile.Profile{before, after}
		r, err := OpenPair([2]string{"old.jfr", "new.jfr"}, before, after)
		if err != nil {
			t.Fatal(err)
		}
		b := openView(t, served(t, r))
		for _, ask := range []struct {
			hash   string
			filter profile.Filter
		}{{"", profile.Filter{}}, {"&focus=HashMap", profile.Filter{Focus: regexp.MustCompile("HashMap")}}, {"&event=1", profile.Filter{Event: 1}}} {
			what := fmt.Sprintf("shorter by %v, %q", shorter, ask.hash)
			var want [2]map[string]report.Count
			var all [2]float64
			for side, p := range both {
				want[side], all[side] = names(p, ask.filter)
			}

			b.open("#tab=timeline" + ask.hash)
			b.Until("candid.timeline().slice(0, 5).every(r => r.lanes[0] !== null || r.lanes[1] !== null) && candid.timeline().length > 3")
			var rows []struct {
				Name          string
				Before, After float64
				Lanes         [2]*float64
				Band          []float64
			}
			b.Eval("candid.timeline()", &rows)
			seen := map[string]bool{}
			lanes := 0
			for _, x := range rows {
				seen[x.Name] = true
				for side, got := range []float64{x.Before, x.After} {
					w := float64(want[side][x.Name].Weight)
					if got != w {
						t.Errorf("%s: timeline: %s has %v on side %d, the report says %v", what, x.Name, got, side, w)
					}
					if l := x.Lanes[side]; l != nil {
						if lanes++; !near(*l, w) {
							t.Errorf("%s: timeline: the lane of %s adds up to %v on side %d, the report says %v", what, x.Name, *l, side, w)
						}
					}
				}
				// If both are equally long, the differences over all of the time add up to those of
				// the shares.
				if shorter == 0 && len(x.Band) > 0 {
					sum := 0.0
					for _, d := range x.Band {
						sum += d
					}
					if w := x.After/all[1] - x.Before/all[0]; math.Abs(sum-w) > 1e-6 {
						t.Errorf("%s: timeline: the band of %s adds up to %v, the shares differ by %v", what, x.Name, sum, w)
					}
				}
			}
			if lanes < 8 {
				t.Errorf("%s: %d lanes were compared", what, lanes)
			}
			for side := range want {
				for name, c := range want[side] {
					if c.Samples > 0 && !seen[name] {
						t.Errorf("%s: timeline lacks %s", what, name)
					}
				}
			}

			b.open("#tab=heatmap" + ask.hash)
			b.Until("candid.heatmap().differences.length > 0")
			var heat struct {
				Mode        string
				Begin, Cell float64
				Sides       [2][]float64
				Differences []float64
			}
			b.Eval("candid.heatmap()", &heat)
			if heat.Mode != "difference" || heat.Begin != 0 {
				t.Errorf("%s: the heatmap is %s from %v", what, heat.Mode, heat.Begin)
			}
			for side, p := range both {
				alone, err := Open("alone", p)
				if err != nil {
					t.Fatal(err)
				}
				cells, err := alone.Heatmap(context.Background(), &Query{Event: ask.filter.Event, Focus: list(ask.filter.Focus)}, 0, alone.end, uint64(heat.Cell), 50)
				if err != nil {
					t.Fatal(err)
				}
				for i, got := range heat.Sides[side] {
					if w := float32(0); i < len(cells) && float32(got) != cells[i] || i >= len(cells) && float32(got) != w {
						t.Fatalf("%s: heatmap: cell %d has %v on side %d", what, i, got, side)
					}
				}
			}
			if alone := float64(r.parts[1].End) / float64(r.parts[0].End); len(heat.Differences) > 0 {
				for i, d := range heat.Differences {
					// Shares of each; those of the shorter one are scaled down by how much shorter
					// it is.
					w := heat.Sides[1][i]/all[1]*min(1, alone) - heat.Sides[0][i]/all[0]*min(1, 1/alone)
					if math.Abs(d-w) > 1e-6 {
						t.Fatalf("%s: heatmap: cell %d differs by %v, want %v", what, i, d, w)
					}
				}
			}

			b.open("#tab=threads" + ask.hash)
			b.Until("document.querySelectorAll('#pane-threads .grid-row').length > 3")
			var cells [][]string
			b.Eval("[...document.querySelectorAll('#pane-threads .grid-row')].map(e => [...e.children].map(c => c.textContent))", &cells)
			for _, c := range cells {
				name, _, _ := strings.Cut(c[7], " × ")
				x, y := want[0][name], want[1][name]
				if w := grouped(x.Samples) + " → " + grouped(y.Samples); c[6] != w || x.Samples+y.Samples == 0 {
					t.Errorf("%s: threads: %s has samples %s, want %s", what, name, c[6], w)
				}
				change := 100 * (float64(y.Weight)/all[1] - float64(x.Weight)/all[0])
				if w := fmt.Sprintf("%.2f", math.Abs(change)); !strings.Contains(c[1], w) && math.Abs(change) >= 0.005 || change > 0.005 != strings.Contains(c[1], "+") && math.Abs(change) >= 0.005 {
					t.Errorf("%s: threads: %s changes by %s, want %v", what, name, c[1], change)
				}
			}
			if c := cells[0]; ask.hash == "" && c[7] != "only before" && !strings.Contains(b.Text("document.querySelector('#pane-threads').innerText"), "only before") {
				t.Errorf("%s: a thread that is only in one is not in the table", what)
			}
		}

		b.open("#tab=events")
		text := b.Text("[...document.querySelectorAll('#pane-events table[aria-label=Events] tbody tr')].map(e => [...e.children].map(c => c.textContent).join('|')).join('\\n')")
		for event, e := range before.Events {
			x, y := before.Select(profile.Filter{Event: event}).All, after.Select(profile.Filter{Event: event}).All
			if w := e.Name + "|" + grouped(x.Samples) + "|" + grouped(y.Samples) + "|"; !strings.Contains(text, w) {
				t.Errorf("events: %q lacks %q", text, w)
			}
		}
		b.open("#tab=about")
		text = b.Text("document.querySelector('#pane-about').innerText")
		for _, want := range []string{"old.jfr", "new.jfr", "java -jar old.jar", "java -jar new.jar", "Before", "After"} {
			if !strings.Contains(text, want) {
				t.Errorf("about lacks %q", want)
			}
		}
		b.quiet()
	}
}

func list(re *regexp.Regexp) []*regexp.Regexp {
	if re == nil {
		return nil
	}
	return []*regexp.Regexp{re}
}

// TestPairChoose chooses threads of two recordings: those of one name are chosen on both sides.
func TestPairChoose(t *testing.T) {
	t.Parallel()
	before, after := twoServers(0)
	r, err := OpenPair([2]string{"old.jfr", "new.jfr"}, before, after)
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	const name = "http-nio-8080-exec-1"
	check := func(what string) {
		t.Helper()
		b.Until("candid.state().threads.length === 2 && !candid.busy()")
		var got struct {
			Before struct{ Chosen pageCount }
			After  pageCount
		}
		b.Eval("(async () => ({before: (await candid.before()).chosen, after: candid.chosen().chosen}))()", &got)
		f := profile.Filter{Thread: regexp.MustCompile("^" + name + "$")}
		if x, y := before.Select(f).Chosen, after.Select(f).Chosen; got.Before.Chosen != (pageCount{float64(x.Samples), float64(x.Weight)}) || got.After != (pageCount{float64(y.Samples), float64(y.Weight)}) || x.Samples == 0 {
			t.Errorf("%s: the page has %+v, the reports %+v and %+v", what, got, x, y)
		}
	}
	b.open("#tab=threads")
	row := "[...document.querySelectorAll('#pane-threads .grid-row')].find(e => e.children[7].textContent === '" + name + "')"
	b.Until("!!" + row)
	b.Eval(row+".querySelector('button').click()", nil)
	check("only")
	b.Eval(row+".querySelector('input').click()", nil)
	b.Until("candid.state().threads.length === 0 && !candid.busy()")
	b.Eval(row+".querySelector('input').click()", nil)
	check("check")
	b.quiet()
}

// TestStretches overlays two ranges of time of one recording in the heatmap and the timeline.
func TestStretches(t *testing.T) {
	t.Parallel()
	r := busy(t, 1500, 12_000)
	b := openView(t, served(t, r))
	end := r.end
	stretches := [2]profile.Filter{{From: 1e9 + 1, To: time.Duration(end / 3)}, {From: time.Duration(end / 2), To: time.Duration(end/2 + end/4)}}
	hash := fmt.Sprintf("&base=%d-%d&from=%d&to=%d", stretches[0].From, stretches[0].To, stretches[1].From, stretches[1].To)
	b.open("#tab=heatmap" + hash)
	b.Until("candid.heatmap().mode === 'whole' && candid.heatmap().columns > 0")
	press := func(pane, label string) {
		t.Helper()
		b.Eval("[...document.querySelectorAll('#pane-"+pane+" .segmented button')].find(e => e.textContent === '"+label+"').click()", nil)
	}
	press("heatmap", "Difference")
	b.Until("candid.heatmap().mode === 'difference' && candid.heatmap().differences.length > 0")
	var sides [2]float64
	b.Eval("candid.heatmap().sides.map(s => s.reduce((a, b) => a + b, 0))", &sides)
	for i, f := range stretches {
		if w := float64(r.p.Select(f).Chosen.Weight); !near(sides[i], w) || w == 0 {
			t.Errorf("the heatmap has %v of side %d, the report %v", sides[i], i, w)
		}
	}
	b.Eval("candid.set({tab: 'timeline'})", nil)
	b.settled()
	b.Until("candid.timeline().length > 3 && candid.timeline().slice(0, 4).every(r => r.lanes[0] !== null && r.lanes[1] !== null)")
	var rows []struct {
		Name          string
		Before, After float64
		Lanes         [2]*float64
	}
	b.Eval("candid.timeline()", &rows)
	for side, f := range stretches {
		want, _ := names(r.p, f)
		got := map[string]float64{} // several threads have one name
		for _, x := range rows {
			has := []float64{x.Before, x.After}[side]
			got[x.Name] += has
			if l := x.Lanes[side]; l != nil && !near(*l, has) {
				t.Errorf("the lane of %s has %v on side %d, its share is of %v", x.Name, *l, side, has)
			}
		}
		for name, w := range want {
			if got[name] != float64(w.Weight) {
				t.Errorf("the timeline has %v of %s on side %d, the report %d", got[name], name, side, w.Weight)
			}
		}
	}
	press("timeline", "Where they are")
	b.Until("candid.state().times === 'whole'")
	b.settled()
	b.quiet()
}
