package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestPairChance asks the page of each method of two recordings whether chance explains
// how it differs: it says what `candid diff` says, in its rows and in the flame graph.
func TestPairChance(t *testing.T) {
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
	for what, two := range map[string][2]*profile.Profile{"two programs": {before, after}, "one program": halves} {
		r, err := OpenPair([2]string{"a", "b"}, two[0], two[1])
		if err != nil {
			t.Fatal(err)
		}
		b := openView(t, served(t, r))
		for event := range two[0].Events { // the second's samples are of different weight
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
			if changed == 0 && what != "one program" {
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
			if most := nodes.All / 50; nodes.All < 100 || what == "one program" && nodes.Coloured > most || what != "one program" && nodes.Coloured == 0 {
				t.Errorf("%s, event %d: %d of %d frames are coloured", what, event, nodes.Coloured, nodes.All)
			}
		}
		b.quiet()
	}
}
