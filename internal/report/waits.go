package report

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Where time is spent waiting, the innermost frame is always the same: the kernel's way to
// put a thread to sleep. What people look for is who waits: the first function of their
// own above the kernel, the C library, the VM and the runtime's library.

// A wait is the time that threads were in one state, below one function of the program.
type wait struct {
	state profile.State
	fn    *profile.Func
	kind  walk.Kind
	profile.Count
}

func (w *wait) String() string {
	return w.state.String() + " " + duration64(w.Weight) + " in " + clean(w.fn.Name)
}

// headWaits is how many waits the header names.
const headWaits = 3

// own is how much a frame is the program's.
type own uint8

const (
	ownNothing own = iota // the kernel, the C library, a VM
	ownLibrary            // the library of a runtime: java.util.concurrent
	ownProgram
)

// systemLibraries are those below what people write, by the beginnings of their file names.
var systemLibraries = []string{
	"libc.", "libc-", "ld-linux", "ld-musl", "ld-", "libpthread", "linux-vdso", "[vdso]", "libjvm.", "libjli.", "libjava.", "libnio.", "libnet.",
	"libextnet.", "libverify.", "libzip.", "libstdc++.", "libgcc_s.",
}

// runtimePackages begin the names of functions that a runtime comes with.
var runtimePackages = []string{"java.", "javax.", "jdk.", "sun.", "com.sun.", "runtime.", "internal/"}

// ownOf says how much the program's a function is.
func ownOf(kind walk.Kind, f *profile.Func) own {
	switch kind {
	case walk.KindUnknown, walk.KindKernel, walk.KindStub:
		return ownNothing
	case walk.KindNative:
		if is, _ := starts(kind, f.Name, f.Module); is || f.Module == "" || f.NoName {
			return ownNothing
		}
		base := path.Base(f.Module)
		if slices.ContainsFunc(systemLibraries, func(l string) bool { return strings.HasPrefix(base, l) }) {
			return ownNothing
		}
	}
	if slices.ContainsFunc(runtimePackages, func(p string) bool { return strings.HasPrefix(f.Name, p) }) {
		return ownLibrary
	}
	return ownProgram
}

// Where a recording of CPU time is too short or too busy for a hint to wait.
const (
	hintLeast = time.Second // that was recorded
	hintShare = 20          // less than one part in so many of a CPU was used
)

// waitingHint says that a recording of CPU time is of a target that hardly used any; ""
// if it did, or if that is not known.
func waitingHint(p *profile.Profile) string {
	d, c := p.Meta.Duration, p.Meta.Cost
	if len(p.Events) != 1 || p.Events[0].Name != "cpu" || p.Events[0].Unit != "nanoseconds" || d < hintLeast || c.TargetCPU == 0 || c.Samples > 0 {
		return ""
	}
	// The kernel's account is as coarse as its tick on some machines.
	used := max(c.TargetCPU, time.Duration(min(p.EventWeights()[0], 1<<62)))
	if used >= d/hintShare {
		return ""
	}
	return "the target used " + duration(used) + " of CPU in " + duration(d) + ": it waits. -e wall shows where; 'candid dump' shows who holds which lock"
}

// waits says whether a thread in a state waits for something.
func waits(s profile.State) bool {
	return s != profile.StateUnknown && s != profile.StateRunning && s != profile.StateRunnable
}

// waitsOf are the waits of a selection of time, the longest first; none if threads ran
// for most of it. Those of a VM's own threads do not count where there are Java threads,
// nor what has no function of the program on its stack where others have: threads of a
// pool that have nothing to do.
func waitsOf(s *profile.Selection) []wait {
	if unit(s) != "nanoseconds" || s.Chosen.Weight == 0 {
		return nil
	}
	var waited uint64
	java := false
	for i, states := range s.States() {
		if waits(profile.State(i)) {
			waited += states.Weight
		}
	}
	if waited < s.Chosen.Weight-waited {
		return nil
	}
	p := s.Profile
	for i, c := range s.Threads {
		java = java || c.Samples > 0 && p.Threads[i].Kind == "java"
	}
	// The innermost frame of the program on each stack, else of a runtime's library.
	type place struct {
		frame uint32
		own   own
	}
	places := make([]place, len(p.Nodes))
	for i := 1; i < len(p.Nodes); i++ {
		n := p.Nodes[i]
		f := &p.Frames[n.Frame]
		places[i] = places[n.Parent]
		if o := ownOf(f.Kind, &p.Funcs[f.Func]); o != ownNothing && o >= places[i].own {
			places[i] = place{n.Frame, o}
		}
	}
	type key struct {
		state        profile.State
		name, module string
	}
	var rows [ownProgram + 1][]wait
	index := [ownProgram + 1]map[key]int{{}, {}, {}}
	s.Each(func(sm *profile.Sample, c profile.Count) {
		kind := p.Threads[sm.Thread].Kind
		if !waits(sm.State) || java && (kind == "compiler" || kind == "gc" || kind == "vm") {
			return
		}
		at := places[sm.Node]
		if at.own == ownNothing {
			return
		}
		f := &p.Frames[at.frame]
		fn := &p.Funcs[f.Func]
		k := key{sm.State, fn.Name, fn.Module}
		i, ok := index[at.own][k]
		if !ok {
			i = len(rows[at.own])
			index[at.own][k] = i
			rows[at.own] = append(rows[at.own], wait{state: sm.State, fn: fn, kind: f.Kind})
		}
		rows[at.own][i].Count.Add(c)
	})
	found := rows[ownProgram]
	if len(found) == 0 {
		found = rows[ownLibrary]
	}
	slices.SortStableFunc(found, func(a, b wait) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.fn.Name, b.fn.Name))
	})
	return found
}

// longestWaits is what the summary says instead of the hottest methods.
func (pg *page) longestWaits(s *profile.Selection, rows []wait) {
	label := pg.paint(bold, left("waits", itemWidth))
	width := 0
	shown := rows[:min(hottestMethods, len(rows))]
	for i := range shown {
		width = max(width, len(shown[i].state.String()))
	}
	for i := range shown {
		r := &shown[i]
		pg.line("%s%s %s  %s", label, left(r.state.String(), width), right(duration64(r.Weight), 7),
			pg.named(r.fn.Name, r.fn.Module, kindColors[r.kind], pg.room(itemWidth+width+10)))
		label = left("", itemWidth)
	}
}
