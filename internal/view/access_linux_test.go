package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// nameless returns the roles of the controls and tables that a screen reader would find without a
// name.
func (b *viewPage) nameless() (list []string) {
	b.t.Helper()
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
			ChildIds   []string
		}
	}
	b.Call("Accessibility.getFullAXTree", nil, &tree)
	named := 0
	for _, n := range tree.Nodes {
		if n.Ignored {
			continue
		}
		role, _ := n.Role.Value.(string)
		switch role {
		case "button", "textbox", "searchbox", "combobox", "checkbox", "radio", "tab", "tabpanel", "slider", "link", "menu", "menuitem", "grid", "treegrid", "table", "application", "Canvas", "toolbar", "tablist", "columnheader", "dialog", "navigation":
			if name, _ := n.Name.Value.(string); strings.TrimSpace(name) != "" {
				named++
			} else if role != "columnheader" { // the header of a column that continues the one before is empty
				list = append(list, role)
			}
		}
	}
	if named < 15 {
		b.t.Errorf("only %d controls are in the accessibility tree", named)
	}
	return list
}

// TestPageAccessible looks at every tab as a screen reader presents it, and at twice the size on a
// screen of the usual width.
func TestPageAccessible(t *testing.T) {
	t.Parallel()
	r := busy(t, 1500, 10_000)
	b := openView(t, served(t, r))
	b.Call("Accessibility.enable", nil, nil)
	end := number0(int(r.end / 2))
	for _, hash := range []string{
		"#tab=flame", "#tab=tree", "#tab=methods", "#tab=callers", "#tab=callers&sandwich=1&of=java.lang.Thread.run", "#tab=timeline", "#tab=heatmap",
		"#tab=threads", "#tab=events", "#tab=about", "#tab=methods&base=0-" + end + "&from=" + end + "&focus=HashMap&search=Order",
	} {
		b.Size(1280, 800, 1)
		b.open(hash)
		if list := b.nameless(); len(list) > 0 {
			t.Errorf("%s: these have no name: %q", hash, list)
		}
		// 1280 by 800 pixels at 200 %.
		b.Size(640, 400, 2)
		b.Until("document.documentElement.clientWidth === 640")
		var box struct{ Page, Pane, Tabs float64 }
		b.Eval("({page: document.documentElement.scrollWidth, pane: document.querySelector('main > .pane:not([hidden])').getBoundingClientRect().height, tabs: document.querySelectorAll('[role=tab]').length})", &box)
		if box.Page > 640 {
			t.Errorf("%s at 200 %%: the page is %v wide in a window of 640", hash, box.Page)
		}
		if box.Pane < 120 {
			t.Errorf("%s at 200 %%: what the tab shows is %v high", hash, box.Pane)
		}
	}
	b.quiet()
}

// TestPageLongNames shows names of 60,000 bytes, of functions, threads, files and the program.
func TestPageLongNames(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(300, 2000, 20)
	long := strings.Repeat("Veryℓong<b>\u202e", 5000)[:60_000]
	for i := range p.Funcs {
		if i%3 == 0 {
			p.Funcs[i].Name = fmt.Sprint(i) + long
			p.Funcs[i].File, p.Funcs[i].Module = long, long
		}
	}
	p.Threads[0].Name, p.Meta.Command, p.Meta.Host = long, long, long
	r, err := Open(long, p)
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	for _, tab := range []string{"flame", "tree", "methods", "callers", "timeline", "threads", "about"} {
		b.open("#tab=" + tab)
		var wide float64
		b.Eval("document.documentElement.scrollWidth", &wide)
		if wide > 1280 {
			t.Errorf("tab %s is %v wide", tab, wide)
		}
		if got := b.Text("String(document.querySelectorAll('main b b, main > b').length)"); got != "0" {
			t.Errorf("tab %s: a name became %s elements", tab, got)
		}
	}
	b.open("#tab=methods")
	b.same("long names", profile.Filter{})
	b.quiet()
}
