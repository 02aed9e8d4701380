package attribution

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// If time is spent waiting, the innermost frame is always the same: the kernel's function that puts
// a thread to sleep. People look for who waits: the first function of their own above the kernel,
// the C library, the VM and the runtime's library.

// Wait is the time that threads were in one state, below one function of the program.
type Wait struct {
	State        profile.State
	Name, Module string
	Kind         walk.Kind
	profile.Count
}

// Waiting reports whether a thread in a state waits for something.
func Waiting(s profile.State) bool {
	return s != profile.StateUnknown && s != profile.StateRunning && s != profile.StateRunnable
}

// Mostly reports whether waiting is most of an amount of time, given by state.
func Mostly(byState []profile.Count) bool {
	var all, waited uint64
	for i, c := range byState {
		all += c.Weight
		if Waiting(profile.State(i)) {
			waited += c.Weight
		}
	}
	return all > 0 && waited >= all-waited
}

// OfVM reports whether a thread of a kind, as in profile.Thread, is a VM's own: if there are Java
// threads nobody asks why it waits.
func OfVM(kind string) bool { return kind == "compiler" || kind == "gc" || kind == "vm" }

// Waits sums up waits.
type Waits struct {
	rows  [Program + 1][]Wait
	index [Program + 1]map[who]int
}

type who struct {
	state        profile.State
	name, module string
}

// Add adds a wait below a function, which belongs to the program as much as of says. Waits below
// Nothing are left out: threads of a pool that have nothing to do.
func (w *Waits) Add(of Part, wait Wait) {
	if of == Nothing || !Waiting(wait.State) {
		return
	}
	k := who{wait.State, wait.Name, wait.Module}
	i, ok := w.index[of][k]
	if !ok {
		if w.index[of] == nil {
			w.index[of] = make(map[who]int)
		}
		w.index[of][k] = len(w.rows[of])
		w.rows[of] = append(w.rows[of], wait)
		return
	}
	w.rows[of][i].Count.Add(wait.Count)
}

// Longest returns the waits of the program's functions, the longest first; those of a runtime's
// library if there are no others.
func (w *Waits) Longest() []Wait {
	found := w.rows[Program]
	if len(found) == 0 {
		found = w.rows[Library]
	}
	slices.SortStableFunc(found, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module), cmp.Compare(a.State, b.State))
	})
	return found
}

// Waiter is the frame of a stack that waits, and how much it belongs to the program: the innermost
// of the frames that belong to it most.
type Waiter struct {
	Frame uint32
	Of    Part
}

// Inner returns what waits in a stack that ends with a call of f, if w waits in the stack without
// it.
func (w Waiter) Inner(f Waiter) Waiter {
	if f.Of != Nothing && f.Of >= w.Of {
		return f
	}
	return w
}

// WaitsOf returns the waits of a selection of time, the longest first; none if threads ran for most
// of it. Waits of a VM's own threads do not count if there are Java threads.
func WaitsOf(s *profile.Selection) []Wait {
	p := s.Profile
	if e := s.Filter.Event; e >= len(p.Events) || p.Events[e].Unit != "nanoseconds" {
		return nil
	}
	states := s.States()
	if !Mostly(states[:]) {
		return nil
	}
	java := false
	for i, c := range s.Threads {
		java = java || c.Samples > 0 && p.Threads[i].Kind == "java"
	}
	places := make([]Waiter, len(p.Nodes))
	for i := 1; i < len(p.Nodes); i++ {
		n := p.Nodes[i]
		f := &p.Frames[n.Frame]
		fn := &p.Funcs[f.Func]
		places[i] = places[n.Parent].Inner(Waiter{n.Frame, Of(f.Kind, fn.Name, fn.Module)})
	}
	var sum Waits
	s.Each(func(sm *profile.Sample, c profile.Count) {
		if java && OfVM(p.Threads[sm.Thread].Kind) {
			return
		}
		at := places[sm.Node]
		if at.Of == Nothing {
			return
		}
		f := &p.Frames[at.Frame]
		fn := &p.Funcs[f.Func]
		sum.Add(at.Of, Wait{sm.State, fn.Name, fn.Module, f.Kind, c})
	})
	return sum.Longest()
}
