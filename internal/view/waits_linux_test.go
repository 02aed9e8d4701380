package view

import (
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// asleep returns a recording of a shop in which nearly all threads wait, all of them in the same
// function of the kernel.
func asleep(t testing.TB) *Recording {
	b := profile.NewBuilder()
	p := b.Profile()
	p.Events = []profile.Event{{Name: "wall", Kind: profile.EventWall, Unit: "nanoseconds", Period: 1e7}}
	p.Meta.Duration = 30 * time.Second
	p.Meta.Command = "java Shop"
	b.AddProcess(profile.Process{PID: 1, Command: "java Shop", Runtime: "hotspot 21"})
	add := func(tid int, kind string, state profile.State, weight time.Duration, names ...string) {
		node := uint32(profile.RootNode)
		for i := len(names) - 1; i >= 0; i-- {
			name, module, native := strings.Cut(names[i], " ")
			k := walk.KindC2
			switch {
			case module == "[kernel]":
				k = walk.KindKernel
			case native:
				k = walk.KindNative
			}
			node = b.Node(node, b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: name, Module: module}), BCI: -1, Kind: k}))
		}
		th := b.Thread(1, tid, kind)
		p.Threads[th].Kind = kind
		b.Add(profile.Sample{Time: uint64(30 * time.Second), Weight: uint64(weight), Node: node, Thread: th, State: state, End: walk.EndComplete})
	}
	below := func(names ...string) []string {
		return append([]string{"futex_do_wait [kernel]", "__futex_abstimed_wait_common libc.so.6", "PlatformEvent::park libjvm.so"}, names...)
	}
	add(2, "java", profile.StateBlocked, 18*time.Second, below("shop.Inventory.reserve", "shop.Shop.order", "java.lang.Thread.run")...)
	add(3, "java", profile.StateParked, 4*time.Second, below("java.util.concurrent.locks.LockSupport.park", "shop.Shop.await")...)
	add(3, "java", profile.StateRunning, time.Second, "shop.Shop.work")
	add(4, "java", profile.StateParked, 29*time.Second, below("java.util.concurrent.ThreadPoolExecutor.getTask", "java.lang.Thread.run")...)
	add(5, "gc", profile.StateSleeping, 30*time.Second, below("WorkerThread::run libjvm.so", "worker libshop.so")...)
	r, err := Open("asleep.jfr", b.Profile())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPageWaits opens a recording of waits: the page names who waits, as reports do, not the
// kernel's function that puts a thread to sleep. For what ran it names the place.
func TestPageWaits(t *testing.T) {
	t.Parallel()
	b := openView(t, served(t, asleep(t)))
	b.open("")
	says := func(want string) {
		t.Helper()
		b.Until("document.querySelector('.hottest').textContent === " + quoted(want))
	}
	says("Longest waits: blocked 18.0 s in Inventory.reserve · parked 4.00 s in Shop.await")
	b.Eval("document.querySelector('.hottest button').click()", nil)
	b.settled()
	if got := b.Text("JSON.stringify([candid.state().tab, candid.state().of])"); got != `["callers","shop.Inventory.reserve"]` {
		t.Errorf("the name leads to %s", got)
	}
	b.Eval("candid.set({states: ['running'], tab: 'flame'})", nil)
	says("Hottest: Shop.work 100 %")
	b.Eval("candid.set({states: ['parked']})", nil)
	says("Longest wait: parked 4.00 s in Shop.await")
	b.Eval("candid.set({states: [], merge: ['^shop\\\\.Inventory']})", nil)
	says("Longest waits: blocked 18.0 s in Shop.order · parked 4.00 s in Shop.await")
	b.quiet()
}
