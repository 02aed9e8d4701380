package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestPairChance checks for each method of two recordings whether chance explains the difference:
// the page says what `candid diff` says, in its rows and in the flame graph.
func TestPairChance(t *testing.T) {
	t.Parallel()
	before, after := twoServers(0)
	var halves [2]*profile.Profile // of one recording: they differ by chance
	all := profiletest.Server(2500, 12_000, 30)
	for i := range halves {
		p := *all
		p.Samples = nil
		for k, s := range all.Samples {
			if (k/3)%2 == i {
				p.Samples = append(p.Samples, s)
			}
		}
		halves[i] = &p
	}
	// Another recording lacks a thread, and a range of time.
	other := *all
	other.Samples = nil
	gone := slices.IndexFunc(all.Threads, func(x profile.Thread) bool { return x.Name == "http-nio-8080-exec-1" })
	for _, s := range all.Samples {
		if at := time.Duration(s.Time); int(s.Thread) != gone && (at < 40*time.Second || at > 60*time.Second) {
			other.Samples = append(other.Samples, s)
		}
	}
	pairs := map[string][2]*profile.Profile{"two programs": {before, after}, "one program": halves}
	if fixture.Full(t) {
		pairs["other times"] = [2]*profile.Profile{all, &other}
	}
	for what, two := range pairs {
		r, err := OpenPair([2]string{"a", "b"}, two[0], two[1])
		if err != nil {
			t.Fatal(err)
		}
		b := openView(t, served(t, r))
		for event := range two[0].Events { // the second's samples have different weights
			c, err := diff.Compare(
				diff.Side{Name: "a", Profile: profile.Only(two[0], event)}, diff.Side{Name: "b", Profile: profile.Only(two[1], event)}, diff.Total)
			if err != nil {
				t.Fatal(err)
			}
			b.open(fmt.Sprintf("#tab=methods&event=%d", event))
			b.Until("document.querySelectorAll('#pane-methods .grid-row').length > 3")
			type pair struct{ Self, Total bool }
			want := map[string]pair{}
			args := &strings.Builder{}
			changed := 0
			for _, m := range c.Methods {
				name := flame.Visible(c.Funcs[m.Func].Name)
				if _, twice := want[name]; twice {
					t.Fatalf("two methods are called %s", name)
				}
				want[name] = pair{c.WithinChance(m.Self), c.WithinChance(m.Total)}
				if !want[name].Self || !want[name].Total {
					changed++
				}
				fmt.Fprintf(args, "[%s,%d,%d,%d,%d],", quoted(name), m.Self[1].Weight, m.Self[0].Weight, m.Total[1].Weight, m.Total[0].Weight)
			}
			if changed == 0 && what == "two programs" {
				t.Errorf("%s, event %d: nothing has changed", what, event)
			}
			got := map[string]pair{}
			b.Eval("Object.fromEntries(["+args.String()+"].map(([name, a, b, c, d]) => [name, {self: candid.byChance(a, b), total: candid.byChance(c, d)}]))", &got)
			for name, w := range want {
				if got[name] != w {
					t.Errorf("%s, event %d: %s: the page says %v, diff says %v", what, event, name, got[name], w)
				}
			}
			var rows [][3]string // name, change of self, its colour
			b.Eval("[...document.querySelectorAll('#pane-methods .grid-row')].map(e => [e.querySelector('.name').textContent, e.children[0].textContent, e.children[0].querySelector('.more, .less, .soft').className])", &rows)
			for _, row := range rows {
				if grey := row[2] == "soft"; grey != want[row[0]].Self || strings.HasPrefix(row[1], "~") != grey && row[1] != "±0" {
					t.Errorf("%s, event %d: %s stands as %q, %s", what, event, row[0], row[1], row[2])
				}
			}
			if says := b.Text("document.querySelector('#pane-methods .remarks').textContent"); !strings.Contains(says, "chance") {
				t.Errorf("the page explains its marks by %q", says)
			}
			b.open(fmt.Sprintf("#tab=flame&event=%d", event))
			var nodes struct{ All, Coloured int }
			b.Eval("({all: candid.changes().length, coloured: candid.changes().filter(c => c !== 10).length})", &nodes)
			if most := nodes.All / 50; nodes.All < 100 || what == "one program" && nodes.Coloured > most || what == "two programs" && nodes.Coloured == 0 {
				t.Errorf("%s, event %d: %d of %d frames are coloured", what, event, nodes.Coloured, nodes.All)
			}
			b.greyOverTime(fmt.Sprintf("%s, event %d", what, event), fmt.Sprintf("&event=%d", event), what)
		}
		b.quiet()
	}
}

// greyOverTime checks what chance explains in threads, timeline, heatmap and events, by the rule of
// the methods. Between two recordings of one program hardly anything is more than chance.
func (b *viewPage) greyOverTime(what, hash, of string) {
	b.t.Helper()
	one, times := of == "one program", of == "other times"
	b.open("#tab=timeline" + hash)
	b.Until("candid.timeline().length > 3 && candid.timeline().slice(0, 5).every(r => r.band.length)")
	var rows []struct {
		Name         string
		Chance, Want bool
		Band         []float64
		Grey         []int
	}
	b.Eval("candid.timeline().map(r => ({...r, want: candid.byChance(r.after, r.before)}))", &rows)
	chance := map[string]bool{}
	coloured, cells := 0, 0
	for _, r := range rows {
		chance[r.Name] = r.Want
		if r.Chance != r.Want {
			b.t.Errorf("%s: the timeline says of %s that chance explains it: %v", what, r.Name, r.Chance)
		}
		for i, by := range r.Band {
			if by != 0 {
				cells++
				coloured += 1 - r.Grey[i]
			}
		}
	}
	if one && coloured > cells/50 || times && hash == "&event=0" && (coloured == 0 || chance["http-nio-8080-exec-1"]) {
		b.t.Errorf("%s: %d of %d cells of the timeline are coloured", what, coloured, cells)
	}
	b.open("#tab=threads" + hash)
	b.Until("document.querySelectorAll('#pane-threads .grid-row').length > 3")
	var threads [][3]string
	b.Eval("[...document.querySelectorAll('#pane-threads .grid-row')].map(e => [e.children[7].textContent, e.children[1].textContent, e.children[1].querySelector('.more, .less, .soft').className])", &threads)
	for _, r := range threads {
		name, _, _ := strings.Cut(r[0], " × ")
		if grey := r[2] == "soft"; grey != chance[name] || strings.HasPrefix(r[1], "~") != grey && r[1] != "±0" {
			b.t.Errorf("%s: thread %s stands as %q, %s", what, name, r[1], r[2])
		}
	}
	b.open("#tab=heatmap" + hash)
	b.Until("candid.heatmap().differences.length > 0")
	var heat struct{ Cells, Coloured, Wrong int }
	b.Eval(`(() => {
		const h = candid.heatmap(), rows = 50, out = {cells: 0, coloured: 0, wrong: 0};
		for (let x = 0; x < h.columns; x++) {
			const sum = (s) => h.sides[s].slice(x * rows, (x + 1) * rows).reduce((a, b) => a + b, 0);
			const column = candid.byChance(sum(1), sum(0));
			for (let i = x * rows; i < (x + 1) * rows; i++) {
				if (!h.differences[i]) continue;
				out.cells++;
				out.coloured += 1 - h.grey[i];
				const cell = candid.byChance(h.sides[1][i], h.sides[0][i]);
				if (!cell && h.grey[i] || cell && column && !h.grey[i]) out.wrong++;
			}
		}
		return out;
	})()`, &heat)
	if heat.Wrong > 0 || heat.Cells < 100 || one && heat.Coloured > heat.Cells/20 || times && hash == "&event=0" && heat.Coloured == 0 {
		b.t.Errorf("%s: of %d cells of the heatmap %d are coloured, %d wrongly", what, heat.Cells, heat.Coloured, heat.Wrong)
	}
	b.open("#tab=events" + hash)
	var states [][2]string
	b.Eval("[...document.querySelectorAll('#pane-events table[aria-label=States] tbody tr')].map(e => [e.children[3].textContent, e.children[3].querySelector('.more, .less, .soft')?.className ?? ''])", &states)
	for _, s := range states {
		if grey := s[1] == "soft"; s[1] == "" || strings.HasPrefix(s[0], "~") != grey && s[0] != "±0" {
			b.t.Errorf("%s: a state stands as %q, %s", what, s[0], s[1])
		}
	}
	if says := b.Text("document.querySelector('#pane-events').innerText"); len(states) > 0 && !strings.Contains(says, "chance explains") {
		b.t.Errorf("%s: events do not explain their marks", what)
	}
}
