package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/walk"
)

// If threads mostly wait, the waiting function is named by the rule of reports, for all threads and
// for each; for a thread that runs, the hottest one is.
func TestWaits(t *testing.T) {
	m := New()
	m.Begin(record.Begun{Events: []profile.Event{{Name: "wall", Kind: profile.EventWall, Unit: "nanoseconds", Period: 1e7}}})
	b := profile.NewBuilder()
	b.AddProcess(profile.Process{PID: 7})
	stack := func(names ...string) uint32 {
		node := uint32(profile.RootNode)
		for _, n := range names {
			kind, module := walk.KindC2, ""
			if n == "futex_do_wait" {
				kind, module = walk.KindKernel, "[kernel]"
			}
			node = b.Node(node, b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: n, Module: module}), Kind: kind}))
		}
		return node
	}
	add := func(tid int, kind string, state profile.State, weight time.Duration, node uint32) {
		th := b.Thread(7, tid, fmt.Sprint(kind, " ", tid))
		b.Threads()[th].Kind = kind
		m.Sample(b, profile.Sample{Time: 4e9, Weight: uint64(weight), Node: node, Thread: th, State: state})
	}
	add(1, "java", profile.StateBlocked, 2*time.Second, stack("java.lang.Thread.run", "Shop.reserve", "futex_do_wait"))
	add(1, "java", profile.StateRunning, time.Second, stack("java.lang.Thread.run", "Shop.work"))
	add(2, "java", profile.StateRunning, time.Second, stack("java.lang.Thread.run", "Shop.work"))
	add(2, "java", profile.StateParked, time.Second/2, stack("java.lang.Thread.run", "Shop.await", "futex_do_wait"))
	add(3, "java", profile.StateParked, 3*time.Second, stack("java.lang.Thread.run", "futex_do_wait"))
	add(4, "gc", profile.StateSleeping, 4*time.Second, stack("worker", "futex_do_wait"))
	m.Batch(b, record.Progress{Elapsed: 4 * time.Second})
	for what, m := range map[string]*Model{"model": m, "copy": m.Clone()} {
		table := m.Table(Query{Window: 10 * time.Second, Threads: true})
		got := ""
		for _, w := range table.Waits {
			got += fmt.Sprintf("%v %v %s; ", w.State, time.Duration(w.Weight), w.Name)
		}
		if want := "blocked 2s Shop.reserve; parked 500ms Shop.await; "; got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		want := map[int]string{1: "blocked Shop.reserve 0.67", 2: "unknown Shop.work 0.67", 3: "parked java.lang.Thread.run 1.00", 4: "sleeping worker 1.00"}
		for _, r := range table.Threads {
			if got := fmt.Sprintf("%v %s %.2f", r.Waits, r.Hottest.Name, r.HottestShare); got != want[r.TID] {
				t.Errorf("%s: thread %d: %q, want %q", what, r.TID, got, want[r.TID])
			}
		}
	}
	one := m.Table(Query{Window: 10 * time.Second, Thread: &ThreadID{7, 2}})
	if len(one.Waits) != 0 {
		t.Errorf("a thread that runs has %v", one.Waits)
	}
	if r := m.Table(Query{Window: MaxWindow, Threads: true}).Report("v"); len(r.Waits) != 2 || r.Waits[0].Name != "Shop.reserve" || r.Waits[0].State != "blocked" {
		t.Errorf("%+v", r.Waits)
	}
}
