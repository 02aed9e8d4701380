package view

import (
	"context"
	"net/url"
	"regexp"
	"testing"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestPair compares two recordings, each of which has methods that the other lacks, in the counts
// and on the page.
func TestPair(t *testing.T) {
	t.Parallel()
	all := profiletest.Server(2500, 12_000, 30)
	only := func(ignore string) *profile.Profile {
		return profile.Apply(all, profile.Filter{Ignore: regexp.MustCompile(ignore)})
	}
	before, after := only("NioEventLoop"), only("OrderService")
	r, err := OpenPair([2]string{"a", "b"}, before, after)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.p.Check(); err != nil {
		t.Fatal(err)
	}
	for side, want := range map[string]*profile.Profile{"before": before, "after": after} {
		for event := range all.Events {
			f := profile.Filter{Event: event, Focus: regexp.MustCompile("HashMap")}
			q, err := r.query(url.Values{"side": {side}, "event": {[]string{"0", "1"}[event]}, "focus": {"HashMap"}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Count(context.Background(), &q)
			if err != nil {
				t.Fatal(err)
			}
			sel := want.Select(f)
			if got.All != sel.All || got.Chosen != sel.Chosen || got.Chosen.Samples == 0 || got.Quality != sel.Quality {
				t.Errorf("%s, event %d: %+v of %+v, want %+v of %+v", side, event, got.Chosen, got.All, sel.Chosen, sel.All)
			}
		}
	}
	if _, err := r.query(url.Values{"side": {"left"}}); err == nil {
		t.Error("a side that there is not is taken")
	}

	b := openView(t, served(t, r))
	b.open("#tab=methods")
	type row struct {
		Name, Module         string
		Self, Total, Samples float64
	}
	compare := func(what, script string, p *profile.Profile) map[string]bool {
		t.Helper()
		sel := p.Select(profile.Filter{})
		want := map[string]row{}
		for _, m := range sel.List() {
			name, module := flame.Visible(sel.Func(m.Method).Name), flame.Visible(sel.Func(m.Method).Module)
			want[name+"\x00"+module] = row{name, module, float64(m.Self.Weight), float64(m.Total.Weight), float64(m.Total.Samples)}
		}
		var got []row
		b.Eval(script, &got)
		names := map[string]bool{}
		for _, g := range got {
			names[g.Name] = true
			if want[g.Name+"\x00"+g.Module] != g {
				t.Fatalf("%s: the page has %+v, want %+v", what, g, want[g.Name+"\x00"+g.Module])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: the page has %d methods, want %d", what, len(got), len(want))
		}
		return names
	}
	was := compare("before", "(async () => (await candid.before()).methods)()", before)
	is := compare("after", "candid.methods()", after)
	gone := ""
	for name := range was {
		if !is[name] && name > gone {
			gone = name
		}
	}
	if gone == "" {
		t.Fatal("nothing vanished")
	}
	// A method that has vanished is in the table, and is counted in the flame graph of before.
	b.Eval("candid.set({query: '^' + "+quoted(gone)+".replace(/[\\\\.+*?()|[\\]{}^$]/g, '\\\\$&') + '$'})", nil)
	b.Until("document.querySelectorAll('#pane-methods .grid-row').length > 0")
	if got := b.Text("document.querySelector('#pane-methods .grid-row .name').textContent"); got != gone {
		t.Errorf("the table shows %q for %q", got, gone)
	}
	if got := b.Text("document.querySelector('#pane-methods .grid-row .less')?.textContent ?? ''"); got == "" {
		t.Error("it is not shown as less")
	}
	b.Eval("candid.set({tab: 'flame'})", nil)
	var found [2]struct{ Nodes, Total float64 }
	b.Eval("candid.matched()", &found[0])
	b.Eval("candid.set({before: true})", nil)
	b.settled()
	b.Eval("candid.matched()", &found[1])
	if found[0].Total != 0 || found[1].Total == 0 {
		t.Errorf("%s has %v after and %v before in the flame graph", gone, found[0].Total, found[1].Total)
	}
	for _, tab := range []string{"tree", "callers", "timeline", "heatmap", "threads", "events", "about"} {
		b.Eval("candid.set({query: '', tab: '"+tab+"'})", nil)
		b.settled()
	}
	b.quiet()
}
