package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// waiting returns a recording of a shop in which nearly all threads wait; frames of stacks are
// given innermost first.
func waiting(java bool) *profile.Profile {
	b := profile.NewBuilder()
	p := b.Profile()
	p.Events = []profile.Event{{Name: "wall", Kind: profile.EventWall, Unit: "nanoseconds", Period: 1e7}}
	p.Meta.Duration = 10 * time.Second
	add := func(thread, kind string, state profile.State, weight time.Duration, names ...string) {
		node := uint32(profile.RootNode)
		for i := len(names) - 1; i >= 0; i-- {
			name, module, isNative := strings.Cut(names[i], " ")
			k := walk.KindC2
			switch {
			case module == "[kernel]":
				k = walk.KindKernel
			case isNative:
				k = walk.KindNative
			}
			fn := b.Func(profile.Func{Name: name, Module: module})
			node = b.Node(node, b.Frame(profile.Frame{Func: fn, BCI: -1, Kind: k}))
		}
		th := b.Thread(1, 2+len(thread), thread)
		p.Threads[th].Kind = kind
		b.Add(profile.Sample{Time: 1, Weight: uint64(weight), Node: node, Thread: th, State: state})
	}
	asleep := []string{"futex_do_wait [kernel]", "__futex_abstimed_wait_common libc.so.6", "PlatformEvent::park libjvm.so"}
	below := func(names ...string) []string { return append(append([]string{}, asleep...), names...) }
	if java {
		add("worker-1", "java", profile.StateBlocked, 18*time.Second, below("Shop$Inventory.reserve", "Shop.order", "java.lang.Thread.run")...)
		add("worker-2", "java", profile.StateParked, 4*time.Second, below("java.util.concurrent.locks.LockSupport.park", "Shop.await")...)
		add("worker-2", "java", profile.StateRunning, time.Second, "Shop.work")
		add("pool-idle", "java", profile.StateParked, 90*time.Second, below("java.util.concurrent.ThreadPoolExecutor.getTask", "java.lang.Thread.run")...)
		add("C2 CompilerThread", "compiler", profile.StateSleeping, 100*time.Second, below("CompileQueue::get libjvm.so")...)
		add("GC Thread#0", "gc", profile.StateSleeping, 100*time.Second, below("worker libshop.so")...)
	} else {
		add("server", "", profile.StateSleeping, 9*time.Second, "do_epoll_wait [kernel]", "epoll_wait libc.so.6", "serve server", "main server", "__libc_start_main libc.so.6")
		add("server", "", profile.StateDisk, time.Second, "io_schedule [kernel]", "pread64 libc.so.6", "load server", "main server")
	}
	return b.Profile()
}

// For waits the report names the function of the program that waits, not how the kernel puts a
// thread to sleep; threads of the VM and of pools without work are not of interest.
func TestLongestWaits(t *testing.T) {
	for _, c := range []struct {
		p    *profile.Profile
		want string
	}{
		{waiting(true), "blocked 18.0s in Shop$Inventory.reserve · parked 4.00s in Shop.await"},
		{waiting(false), "sleeping 9.00s in serve · disk 1.00s in load"},
	} {
		text := textOf(t, c.p, Options{})
		if !strings.Contains(text, "  longest waits: "+c.want+"\n") {
			t.Errorf("%q is missing in\n%s", c.want, text)
		}
		if !strings.Contains(text, "a sample of a wait weighs as long as it was") || strings.Contains(text, "one each 10.0ms ·") {
			t.Error(text)
		}
	}
	var b bytes.Buffer
	if err := Summary(&b, waiting(true), Costs{}, Options{}); err != nil {
		t.Fatal(err)
	}
	if want := "waits    blocked   18.0s  Shop$Inventory.reserve\n         parked    4.00s  Shop.await\n"; !strings.Contains(b.String(), want) || strings.Contains(b.String(), "futex") {
		t.Errorf("%q is missing in\n%s", want, b.String())
	}
	// Only what the filter chooses is considered.
	running := textOf(t, waiting(true), Options{Filter: profile.Filter{States: profile.StateSet(0).With(profile.StateRunning)}})
	if strings.Contains(running, "longest waits") {
		t.Error(running)
	}
	var names []string
	p := waiting(true)
	for _, w := range attribution.WaitsOf(p.Select(profile.Filter{States: profile.StateSet(0).With(profile.StateParked)})) {
		names = append(names, WaitText(&w))
	}
	if got := strings.Join(names, "; "); got != "parked 4.00s in Shop.await" {
		t.Error(got)
	}
}

// A recording of CPU time and of waits summarizes both, whichever comes first.
func TestSummaryOfTwoEvents(t *testing.T) {
	p := waiting(true)
	p.Events = append(p.Events, profile.Event{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1e7})
	cpu := uint16(len(p.Events) - 1)
	for i := range p.Samples {
		if s := p.Samples[i]; s.State == profile.StateRunning {
			s.Event = cpu
			p.Samples = append(p.Samples, s)
			break
		}
	}
	p.Events[0].Name, p.Events[0].Kind = "wall", profile.EventWall
	for shown, want := range map[int][]string{
		0:        {"waits    blocked   18.0s  Shop$Inventory.reserve\n", "of cpu   1 sample · 1.00s in all\nhottest "},
		int(cpu): {"hottest ", "in all\nwaits    blocked   18.0s  Shop$Inventory.reserve\n"},
	} {
		var b bytes.Buffer
		if err := Summary(&b, p, Costs{Target: time.Millisecond}, Options{Filter: profile.Filter{Event: shown}}); err != nil {
			t.Fatal(err)
		}
		for _, w := range append(want, "cost     copying 1.00ms") {
			if !strings.Contains(b.String(), w) {
				t.Errorf("event %d is shown, and %q is missing in\n%s", shown, w, b.String())
			}
		}
	}
}

// A program none of whose threads is in its own code still has waits.
func TestWaitsOfALibrary(t *testing.T) {
	p := waiting(true)
	for i := range p.Funcs {
		p.Funcs[i].Name = strings.Replace(p.Funcs[i].Name, "Shop", "java.Shop", 1)
	}
	if rows := attribution.WaitsOf(p.Select(profile.Filter{})); len(rows) == 0 || rows[0].Name != "java.util.concurrent.ThreadPoolExecutor.getTask" {
		t.Errorf("%v", rows)
	}
}

// A report of the CPU time of a program that hardly uses any says where else to look.
func TestWaitingHint(t *testing.T) {
	idleFor := func(used, during time.Duration) *profile.Profile {
		p := &profile.Profile{Events: []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1e7}}}
		p.Meta.Duration, p.Meta.Cost.TargetCPU = during, used
		return p
	}
	const want = "the target used 100ms of CPU in 5.00s: else it waited, or was not given a CPU. -e wall shows which, and where; 'candid dump' shows who holds which lock"
	idle := idleFor(100*time.Millisecond, 5*time.Second)
	if got := waitingHint(idle); got != want {
		t.Errorf("%q", got)
	}
	if text := textOf(t, idle, Options{}); strings.Count(text, want) != 1 {
		t.Error(text)
	}
	for _, o := range []Options{{}, {NoMethods: true}} { // with NoMethods the report has it already
		var b bytes.Buffer
		if err := Summary(&b, idle, Costs{}, o); err != nil || strings.Contains(b.String(), want) == o.NoMethods {
			t.Errorf("%v\n%s", err, b.String())
		}
	}
	busy := idleFor(time.Second, 5*time.Second)
	short := idleFor(time.Millisecond, 500*time.Millisecond)
	unknown := idleFor(0, 5*time.Second)
	wall := idleFor(100*time.Millisecond, 5*time.Second)
	wall.Events[0].Name, wall.Events[0].Kind = "wall", profile.EventWall
	part := idleFor(100*time.Millisecond, 5*time.Second)
	part.Meta.Cost.Samples = 7
	coarse := idleFor(time.Millisecond, 5*time.Second) // the kernel's account lags behind the samples
	coarse.Threads = []profile.Thread{{}}
	coarse.Nodes = []profile.Node{{}}
	coarse.Samples = []profile.Sample{{Weight: 3e9}}
	for name, p := range map[string]*profile.Profile{"busy": busy, "short": short, "unknown": unknown, "wall": wall, "part": part, "coarse": coarse} {
		if got := waitingHint(p); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
