package view

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/report"
)

// wholeStacks returns a server all of whose stacks are whole: reports show missing frames elsewhere
// than the page does.
func wholeStacks(nodes, samples int) *profile.Profile {
	p := profiletest.Server(nodes, samples, 40)
	for i := range p.Samples {
		p.Samples[i].End = 0
	}
	return p
}

type pageRow struct {
	Depth                        int
	Name, Module                 string
	Open, Leaf                   bool
	Self, Total, Before, Samples float64
}

// reported returns the nodes of a tree in a report, by the names on their path.
func reported(p *profile.Profile, f profile.Filter, callers *regexp.Regexp) map[string]report.Node {
	o := report.Options{Filter: f, View: report.ViewTree, Callers: callers}
	sel := p.Select(f)
	rep, list := report.Make(sel, o), sel.List()
	nodes := rep.Calls
	if callers != nil {
		nodes = rep.Callers
	}
	ways := make([]string, len(nodes))
	out := make(map[string]report.Node)
	for i, n := range nodes {
		if i > 0 {
			m := sel.Func(list[n.Method].Method)
			ways[i] = ways[n.Parent] + "\n" + flame.Visible(m.Name) + "\x00" + flame.Visible(m.Module)
			out[ways[i]] = n
		}
	}
	return out
}

// rows compares the rows of a tab with trees of reports, from rows of some depth on: for what is
// shown, and for what it is compared with. Everything below open rows must be there.
func (b *viewPage) rows(what, tab string, now, before map[string]report.Node) (list []pageRow) {
	b.t.Helper()
	b.settled()
	b.Eval("candid.rows('"+tab+"')", &list)
	b.sameRows(what, list, now, before, tab == "callers")
	return list
}

func (b *viewPage) sameRows(what string, list []pageRow, now, before map[string]report.Node, callers bool) {
	b.t.Helper()
	open := map[string]bool{"": true}
	met := map[string]bool{}
	var way []string
	for _, r := range list {
		way = append(way[:r.Depth], r.Name+"\x00"+r.Module)
		path := "\n" + strings.Join(way, "\n")
		if met[path] {
			b.t.Fatalf("%s: %q is there twice", what, path)
		}
		met[path] = true
		n, was := now[path], before[path]
		self := float64(n.Self.Weight)
		if r.Total != float64(n.Total.Weight) || r.Samples != float64(n.Total.Samples) || r.Before != float64(was.Total.Weight) || r.Self != self || n.Total.Samples+was.Total.Samples == 0 {
			b.t.Fatalf("%s: the page has %+v, the report %+v, before %+v", what, r, n, was)
		}
		open[path] = r.Open
	}
	for _, all := range []map[string]report.Node{now, before} {
		for path := range all {
			if open[path[:strings.LastIndexByte(path, '\n')]] && !met[path] {
				b.t.Fatalf("%s: %q is not there", what, path)
			}
		}
	}
}

// press opens or closes the row at i.
func (b *viewPage) press(tab string, list []pageRow, i int) {
	b.t.Helper()
	row := fmt.Sprintf("document.querySelector('#pane-%s [data-row=\"%d\"]')", tab, i)
	b.Eval(fmt.Sprintf("(() => { const s = document.querySelector('#pane-%s .grid-scroll'); s.scrollTop = %d * document.querySelector('#pane-%s .grid-row').offsetHeight; })()", tab, max(0, i-3), tab), nil)
	b.Until(row + " !== null")
	b.Eval(row+".querySelector('.twist').click()", nil)
	b.settled()
}

// TestPageRows opens and closes rows of the call tree and of callers, filters, and compares all
// numbers with those of reports.
func TestPageRows(t *testing.T) {
	t.Parallel()
	p := wholeStacks(1500, 12_000)
	r, err := Open("whole.jfr", p)
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	opened := func(list []pageRow) (n int) {
		for _, r := range list {
			if r.Open {
				n++
			}
		}
		return n
	}
	// The method with most samples of its own whose name is not part of another's.
	sel := p.Select(profile.Filter{})
	name := flame.Visible(sel.Func(sel.List()[0].Method).Name)
	exactly := regexp.MustCompile("^" + regexp.QuoteMeta(name) + "$")
	for _, tab := range []string{"tree", "callers"} {
		hash := "#tab=" + tab
		var callers *regexp.Regexp
		if tab == "callers" {
			hash += "&of=" + url.QueryEscape(name)
			callers = exactly
		}
		b.open(hash)
		list := b.rows(tab, tab, reported(p, profile.Filter{}, callers), nil)
		first := opened(list)
		if first == 0 {
			t.Fatalf("%s: nothing opens by itself: %+v", tab, list)
		}
		// Closed rows open, the last one first, and open ones close and open again.
		for range 6 {
			i := len(list) - 1
			for i >= 0 && (list[i].Leaf || list[i].Open) {
				i--
			}
			if i < 0 {
				break
			}
			b.press(tab, list, i)
			list = b.rows(tab+", opened", tab, reported(p, profile.Filter{}, callers), nil)
			if !list[i].Open {
				t.Fatalf("%s: row %d does not open", tab, i)
			}
		}
		before := list
		for range 2 {
			b.press(tab, list, 0)
			list = b.rows(tab+", toggled", tab, reported(p, profile.Filter{}, callers), nil)
		}
		if len(list) != len(before) {
			t.Errorf("%s: %d rows were there, %d are when the first was closed and opened", tab, len(before), len(list))
		}
		// Open rows stay open, whatever else is chosen.
		f := profile.Filter{From: 2e9, To: 15e9}
		b.Eval(fmt.Sprintf("candid.set({from: %d, to: %d})", f.From, f.To), nil)
		part := b.rows(tab+", a stretch of time", tab, reported(p, f, callers), nil)
		b.Eval("candid.set({focus: ['HashMap']})", nil)
		f.Focus = regexp.MustCompile("HashMap")
		b.rows(tab+", focus", tab, reported(p, f, callers), nil)
		b.Eval("candid.set({from: 0, to: 0, focus: []})", nil)
		list = b.rows(tab+", all again", tab, reported(p, profile.Filter{}, callers), nil)
		if opened(list) != opened(before) || opened(part) == 0 {
			t.Errorf("%s: %d rows were open, %d are, %d of a part", tab, opened(before), opened(list), opened(part))
		}
		// Two ranges of time, one compared with the other.
		b.Eval("candid.set({base: [1000000001, 9000000000], from: 12000000000, to: 25000000000})", nil)
		now, was := profile.Filter{From: 12e9, To: 25e9}, profile.Filter{From: 1e9 + 1, To: 9e9}
		b.Until("candid.compared()")
		b.rows(tab+", two stretches", tab, reported(p, now, callers), reported(p, was, callers))
		b.Eval("candid.set({base: null, from: 0, to: 0})", nil)
		b.Until("!candid.compared() && !candid.busy()")
	}
	b.quiet()
}

// TestPageRowsSplit gives each thread a root.
func TestPageRowsSplit(t *testing.T) {
	t.Parallel()
	p := wholeStacks(1500, 12_000)
	r, err := Open("whole.jfr", p)
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	b.open("#tab=tree&split=thread&from=" + fmt.Sprint(int64(time.Second)))
	var list []pageRow
	for k := range 5 {
		b.Eval("candid.rows('tree')", &list)
		i := len(list) - 1
		for i >= 0 && (list[i].Leaf || list[i].Open || k < 3 && list[i].Depth > 0) {
			i--
		}
		b.press("tree", list, i)
	}
	b.Eval("candid.rows('tree')", &list)
	names := map[string]uint32{}
	var label []string
	b.Eval("candid.threads().map(t => t.name)", &label)
	threads, deep := 0, 0
	for i := 0; i < len(list); {
		end := i + 1
		for end < len(list) && list[end].Depth > 0 {
			end++
		}
		one := ^uint32(0)
		for k := range p.Threads {
			if strings.HasSuffix(list[i].Name, fmt.Sprintf(" · %d", p.Threads[k].TID)) {
				one = uint32(k)
			}
		}
		if one == ^uint32(0) {
			t.Fatalf("%q is no thread", list[i].Name)
		}
		names[list[i].Name] = one
		f := profile.Filter{From: time.Second, OneThread: &one}
		if got, want := list[i], p.Select(f).Chosen; got.Total != float64(want.Weight) || got.Samples != float64(want.Samples) {
			t.Errorf("%+v has %+v in the report", got, want)
		}
		if below := list[i+1 : end]; len(below) > 0 {
			for k := range below {
				below[k].Depth--
			}
			b.sameRows(list[i].Name, below, reported(p, f, nil), nil, false)
			deep++
		}
		threads++
		i = end
	}
	if threads < 5 || deep < 2 {
		t.Errorf("%d threads are there, %d are open", threads, deep)
	}
	b.quiet()
}

// TestPageRowsPair compares two recordings.
func TestPageRowsPair(t *testing.T) {
	t.Parallel()
	all := wholeStacks(1500, 12_000)
	before, after := profile.Apply(all, profile.Filter{To: 18e9}), profile.Apply(all, profile.Filter{From: 12e9, Ignore: regexp.MustCompile("Order.*get")})
	r, err := OpenPair([2]string{"a", "b"}, before, after)
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	b.open("#tab=tree")
	now, was := reported(after, profile.Filter{}, nil), reported(before, profile.Filter{}, nil)
	list := b.rows("two recordings", "tree", now, was)
	for i := len(list) - 1; i >= 0; i-- {
		if !list[i].Leaf && !list[i].Open {
			b.press("tree", list, i)
			break
		}
	}
	b.rows("two recordings, opened", "tree", now, was)
	sel := after.Select(profile.Filter{})
	name := flame.Visible(sel.Func(sel.List()[0].Method).Name)
	re := regexp.MustCompile("^" + regexp.QuoteMeta(name) + "$")
	b.Eval("candid.set({tab: 'callers', of: "+quoted(name)+"})", nil)
	b.rows("callers in two recordings", "callers", reported(after, profile.Filter{}, re), reported(before, profile.Filter{}, re))
	b.quiet()
}
