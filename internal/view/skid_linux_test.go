package view

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

// late makes every third sample one that the kernel delivered late, in a function called by the one
// where it occurred.
func late(p *profile.Profile) {
	fn := uint32(len(p.Funcs))
	p.Funcs = append(p.Funcs, profile.Func{Name: "pvm_irq_enable", Module: "[kernel]"})
	frame := uint32(len(p.Frames))
	p.Frames = append(p.Frames, profile.Frame{Func: fn, BCI: -1, Kind: walk.KindKernel, Flags: walk.Skid})
	below := map[uint32]uint32{}
	for i := range p.Samples {
		s := &p.Samples[i]
		if i%3 != 0 || s.Node == profile.RootNode {
			continue
		}
		n, ok := below[s.Node]
		if !ok {
			n = uint32(len(p.Nodes))
			p.Nodes = append(p.Nodes, profile.Node{Parent: s.Node, Frame: frame})
			below[s.Node] = n
		}
		s.Node = n
	}
}

// TestPageSkid shows samples that came late as reports do, in the function before, and on request
// where they came, as report --raw does; also for a recording that grows.
func TestPageSkid(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(2000, 10_000, 30)
	p.Meta.Start = time.Now()
	late(p)
	r, err := Open("late.jfr", p)
	if err != nil {
		t.Fatal(err)
	}
	has := func(b *viewPage, what string, want bool) {
		t.Helper()
		var list []pageMethod
		b.Eval("candid.methods()", &list)
		got := slices.ContainsFunc(list, func(m pageMethod) bool { return m.Name == "pvm_irq_enable" && m.Self > 0 })
		if got != want {
			t.Errorf("%s: the method list has pvm_irq_enable: %v", what, got)
		}
	}
	b := openView(t, served(t, r))
	b.open("#tab=methods")
	b.same("folded", profile.Filter{})
	has(b, "folded", false)
	b.Eval("document.querySelector('button.raw').click()", nil)
	b.settled()
	b.same("raw", profile.Filter{Raw: true})
	has(b, "raw", true)
	if got := b.Text("location.hash"); got != "#tab=methods&raw=1&starts=shown" && got != "#tab=methods&starts=shown&raw=1" {
		t.Errorf("the address is %q", got)
	}
	b.Eval("document.querySelector('.chip.raw button').click()", nil)
	b.settled()
	b.same("folded again", profile.Filter{})
	b.open("#tab=flame&raw=1")
	b.same("raw by its address", profile.Filter{Raw: true})
	b.quiet()

	w := newWriter(t, p)
	grows := w.followed()
	b = openView(t, served(t, grows))
	b.open("#tab=methods&raw=1")
	for _, n := range []int{1000, 7000, len(p.Samples)} {
		w.to(n)
		all := 0
		for _, s := range p.Samples[:n] {
			if s.Event == 0 {
				all++
			}
		}
		b.Until(fmt.Sprintf("candid.chosen().all.samples === %d && !candid.busy()", all))
		b.sameAs(grows.p, fmt.Sprintf("raw, %d samples", n), profile.Filter{Raw: true})
	}
	b.Eval("candid.set({raw: false})", nil)
	b.settled()
	b.sameAs(grows.p, "folded, all samples", profile.Filter{})
}
