package view

import (
	"fmt"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestPageHottestInSight opens a recording of deep stacks at 200 %: the frame with most of the time
// is visible at once, in both orientations, and stays where somebody scrolled to.
func TestPageHottestInSight(t *testing.T) {
	t.Parallel()
	b := profile.NewBuilder()
	p := b.Profile()
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1e7}}
	b.AddProcess(profile.Process{PID: 1, Command: "deep"})
	node := uint32(profile.RootNode)
	for depth := range 60 {
		node = b.Node(node, b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: fmt.Sprintf("shop.Deep.call%d", depth)}), BCI: -1, Kind: walk.KindC2}))
		n := 1
		if depth == 40 {
			n = 100 // the hottest frame is at neither end
		}
		for i := range n {
			b.Add(profile.Sample{Time: uint64(depth)*1e9 + uint64(i), Weight: 1e7, Node: node, Thread: b.Thread(1, 2, "main"), State: profile.StateRunning, End: walk.EndComplete})
		}
	}
	r, err := Open("deep.jfr", b.Profile())
	if err != nil {
		t.Fatal(err)
	}
	page := openView(t, served(t, r))
	page.Size(640, 400, 2)
	const seen = "(([top, bottom], box) => top >= box.top && bottom <= innerHeight)(candid.rowAt(candid.hottest()), document.querySelector('#pane-flame canvas').getBoundingClientRect())"
	for _, hash := range []string{"#tab=flame", "#icicle=1"} {
		page.open("#tab=about")
		page.open(hash)
		if got := page.Text("candid.name(candid.hottest())"); got != "shop.Deep.call40" {
			t.Errorf("the hottest frame is %s", got)
		}
		page.Until("document.querySelector('.hottest').textContent !== ''") // it takes a line of the page
		page.Until(seen)
	}
	// After the reader goes elsewhere, the page stays there.
	page.Eval("candid.select(1)", nil)
	page.Size(640, 420, 2)
	page.Until("(([top, bottom], box) => top >= box.top && bottom <= box.bottom)(candid.rowAt(1), document.querySelector('#pane-flame canvas').getBoundingClientRect())")
	if page.Text("String("+seen+")") == "true" {
		t.Error("the page went back to the hottest frame")
	}
	page.quiet()
}

// TestPairProcesses chooses a program in two recordings of two processes each: the threads of both
// processes that ran it are chosen, whatever their numbers.
func TestPairProcesses(t *testing.T) {
	t.Parallel()
	before, after := twoServers(0)
	of := [2]map[string]uint64{{}, {}} // samples of the first event
	for side, p := range []*profile.Profile{before, after} {
		p.Threads = slices.Clone(p.Threads) // the two share them
		server := p.Threads[0].PID
		p.Processes = []profile.Process{{PID: server, Command: "/opt/server run"}, {PID: 700 + side, Command: "/usr/bin/worker --all"}}
		for i := range p.Threads {
			if p.Threads[i].PID = server; i%3 == 1 {
				p.Threads[i].PID = 700 + side
			}
		}
		for _, s := range p.Samples {
			if s.Event == 0 {
				of[side][map[bool]string{true: "server run", false: "worker --all"}[p.Threads[s.Thread].PID == server]]++
			}
		}
	}
	r, err := OpenPair([2]string{"a", "b"}, before, after)
	if err != nil {
		t.Fatal(err)
	}
	b := openView(t, served(t, r))
	b.open("#tab=threads")
	b.Until("document.querySelectorAll('#pane-threads select option').length === 3")
	var options []string
	b.Eval("[...document.querySelectorAll('#pane-threads select option')].map(e => e.value)", &options)
	for _, name := range options[1:] {
		if of[0][name] == 0 || of[1][name] == 0 {
			t.Fatalf("the processes are %q, want those of %v", options, of)
		}
		b.Eval("(e => { e.value = "+quoted(name)+"; e.dispatchEvent(new Event('change')); })(document.querySelector('#pane-threads select'))", nil)
		b.Until(fmt.Sprintf("!candid.busy() && candid.chosen().chosen.samples === %d", of[1][name]))
		b.Until("[...document.querySelectorAll('#pane-threads .grid-row')].every(e => e.querySelector('input').checked) && document.querySelector('#pane-threads select').value === " + quoted(name))
		var was float64
		b.Eval("(async () => (await candid.before()).chosen.chosen.samples)()", &was)
		if uint64(was) != of[0][name] {
			t.Errorf("%s has %v samples before, want %d", name, was, of[0][name])
		}
	}
	b.quiet()
}
