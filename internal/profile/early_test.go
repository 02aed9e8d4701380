package profile_test

import (
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestLeaveOut builds a profile again, excluding what a filter does not choose: applying the filter
// to it leaves the same as applying it to the whole.
func TestLeaveOut(t *testing.T) {
	p := profiletest.Server(2500, 12_000, 30)
	for i := range p.Samples {
		p.Samples[i].State = profile.State(1 + i%3)
	}
	end := time.Duration(p.Samples[len(p.Samples)-1].Time)
	for _, f := range []profile.Filter{
		{},
		{From: end / 4, To: end / 2},
		{States: profile.StateSet(0).With(profile.StateRunnable)},
		{Focus: regexp.MustCompile("HashMap")},
		{Ignore: regexp.MustCompile("HashMap|Order")},
		{Focus: regexp.MustCompile("get"), Ignore: regexp.MustCompile("Order"), From: end / 3, States: profile.StateSet(0).With(profile.StateRunning)},
		{Focus: regexp.MustCompile("^none$")},
	} {
		b := profile.NewBuilder()
		b.LeaveOut(f)
		for _, fn := range p.Funcs {
			b.Func(fn)
		}
		for _, fr := range p.Frames {
			b.Frame(fr)
		}
		for _, th := range p.Threads {
			b.NewThread(th.PID, th.TID, th.Name)
		}
		// Stacks are added when they first occur.
		nodes := make([]uint32, len(p.Nodes))
		var node func(uint32) uint32
		node = func(n uint32) uint32 {
			if n != profile.RootNode && nodes[n] == 0 {
				nodes[n] = b.Node(node(p.Nodes[n].Parent), p.Nodes[n].Frame)
			}
			return nodes[n]
		}
		for _, s := range p.Samples {
			s.Node = node(s.Node)
			b.Add(s)
		}
		left := b.LeftOut()
		got := b.Finish()
		kept := len(got.Samples)
		got, want := profile.Apply(got, f), profile.Apply(p, f)
		// By time, only a sample at the very beginning is not excluded at once.
		if len(got.Samples) != len(want.Samples) || kept > len(want.Samples)+1 || int(left)+kept != len(p.Samples) {
			t.Errorf("%+v: %d samples, %d kept and %d left out, want %d of %d", f, len(got.Samples), kept, left, len(want.Samples), len(p.Samples))
			continue
		}
		for i := range got.Samples {
			g, w := got.Samples[i], want.Samples[i]
			if g.Node != nodes[w.Node] || g.Time != w.Time || g.Thread != w.Thread {
				t.Fatalf("%+v: sample %d is %+v, want %+v", f, i, g, w)
			}
		}
	}
	// A file without times is not cut by time while it is read: it is refused later.
	b := profile.NewBuilder()
	b.LeaveOut(profile.Filter{From: time.Second})
	b.Thread(1, 1, "t")
	b.Add(profile.Sample{Weight: 1})
	if got := b.Finish(); len(got.Samples) != 1 || !reflect.DeepEqual(got.Samples[0], profile.Sample{Weight: 1}) {
		t.Errorf("%+v", got.Samples)
	}
}
