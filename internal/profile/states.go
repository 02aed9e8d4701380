package profile

import (
	"cmp"
	"slices"
	"strings"
)

// NumStates is how many states there are.
const NumStates = int(StateDisk) + 1

// StateSet is a set of states; the empty one stands for all.
type StateSet uint16

// Has reports whether s is in the set.
func (set StateSet) Has(s State) bool { return set == 0 || set>>s&1 != 0 }

// With returns the set with s added.
func (set StateSet) With(s State) StateSet { return set | 1<<s }

// StateNames returns the names of all states, as StateByName accepts them.
func StateNames() []string { return slices.Clone(stateNames[:]) }

// StateCount is a row of what threads were doing.
type StateCount struct {
	State   State
	Syscall string // the one they were in, "" for none
	Count
}

// ByState returns what threads were doing, by state and system call: the most weight first.
func (s *Selection) ByState() []StateCount {
	var rows []StateCount
	for state, calls := range s.doing {
		for call, c := range calls {
			if c.Samples == 0 {
				continue
			}
			row := StateCount{State: State(state), Count: c}
			if call > 0 {
				row.Syscall = s.Profile.Syscalls[call]
			}
			rows = append(rows, row)
		}
	}
	return SortStates(rows)
}

// SortStates returns the sums of rows of the same state and system call: the most weight first. The
// order does not depend on that of rows, which it changes.
func SortStates(rows []StateCount) []StateCount {
	type key struct {
		state State
		call  string
	}
	at := make(map[key]int, len(rows))
	merged := rows[:0]
	for _, r := range rows {
		k := key{r.State, r.Syscall}
		if i, ok := at[k]; ok {
			merged[i].Add(r.Count)
			continue
		}
		at[k] = len(merged)
		merged = append(merged, r)
	}
	rows = merged
	slices.SortStableFunc(rows, func(a, b StateCount) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.State, b.State), cmp.Compare(a.Syscall, b.Syscall))
	})
	return rows
}

// States returns the counts of each state.
func (s *Selection) States() [NumStates]Count {
	var out [NumStates]Count
	for _, row := range s.ByState() {
		out[row.State].Add(row.Count)
	}
	return out
}

// ThreadStates returns the counts of each state of a thread.
func (s *Selection) ThreadStates(thread uint32) []Count {
	return s.threadStates[int(thread)*NumStates:][:NumStates]
}

// HasStates reports whether threads were seen in states other than running.
func (s *Selection) HasStates() bool {
	for state, c := range s.States() {
		if c.Samples > 0 && State(state) != StateRunning && State(state) != StateUnknown {
			return true
		}
	}
	return false
}

// EventByName returns the index of the event of that name.
func (p *Profile) EventByName(name string) (int, bool) {
	i := slices.IndexFunc(p.Events, func(e Event) bool { return e.Name == name })
	return i, i >= 0
}

// Sampled reports whether an event has samples.
func (p *Profile) Sampled(event int) bool {
	sampled := slices.ContainsFunc(p.Samples, func(s Sample) bool { return int(s.Event) == event })
	p.others(func(s *Sample) { sampled = sampled || int(s.Event) == event })
	return sampled
}

// others visits the samples that are not in Samples.
func (p *Profile) others(visit func(s *Sample)) {
	rest := Profile{packed: p.packed, sums: p.sums}
	rest.Each(func(s *Sample, _ uint64) { visit(s) })
}

// FirstEvent returns the index of the event that is shown if none is asked for: the first one that
// has samples, 0 if there are none at all.
func (p *Profile) FirstEvent() int {
	first := len(p.Events)
	for i := range p.Samples {
		if e := int(p.Samples[i].Event); e == 0 {
			return 0
		} else if e < first {
			first = e
		}
	}
	for _, l := range p.packed {
		for r := l.reader(); first > 0 && r.next(); {
			if first = min(first, int(r.s.Event)); !l.mixed {
				break // all are of one event
			}
		}
	}
	if first > 0 {
		p.sums.each(func(u sum) {
			s := u.sample()
			first = min(first, int(s.Event))
		})
	}
	if first == len(p.Events) {
		return 0
	}
	return first
}

// EventNames returns the names of all events, for people.
func (p *Profile) EventNames() string {
	names := make([]string, len(p.Events))
	for i, e := range p.Events {
		names[i] = e.Name
	}
	return strings.Join(names, ", ")
}

// Only returns the part of p that is of one event, as a profile of its own. It shares everything
// that does not change with p, which stays as it is.
func Only(p *Profile, event int) *Profile {
	out := *p
	out.Events = p.Events[event : event+1]
	out.Samples = nil
	for _, s := range p.Samples {
		if int(s.Event) == event {
			s.Event = 0
			out.Samples = append(out.Samples, s)
		}
	}
	out.keep(p, func(s *Sample) bool {
		if int(s.Event) != event {
			return false
		}
		s.Event = 0
		return true
	}, nil)
	return &out
}

// keep copies those samples of of that are not in Samples and for which f returns true; f may
// change them. For sums, summed decides instead, if it is not nil.
func (p *Profile) keep(of *Profile, f, summed func(s *Sample) bool) {
	p.packed, p.latest = nil, 0
	if summed == nil {
		summed = f
	}
	for _, l := range of.packed {
		l = l.change(func(s *Sample) bool {
			ok := f(s)
			if ok {
				p.latest = max(p.latest, s.Time)
			}
			return ok
		})
		if l.n > 0 {
			p.packed = append(p.packed, l)
		}
	}
	p.sums = of.sums.change(summed)
}
