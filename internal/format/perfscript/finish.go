package perfscript

import (
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// comment handles a line of what perf script --header prints.
func (r *reader) comment(text string) {
	key, value, ok := strings.Cut(strings.TrimLeft(text, "# \t"), ":")
	if !ok {
		return
	}
	value = strings.ToValidUTF8(strings.TrimSpace(value), "\uFFFD")
	switch strings.TrimSpace(key) {
	case "cmdline":
		r.command = value
	case "hostname":
		r.host = value
	case "perf version":
		r.version = value
	}
}

// first are the events with which a profile of several begins: those that show where the time went.
var first = []string{"cycles", "cpu-clock", "task-clock"}

// Kind returns the kind of perf's event of that name.
func Kind(name string) profile.EventKind {
	if k := profile.EventKindOf(base(name)); k.OnCPU() {
		return k
	}
	return profile.EventKindOf(name)
}

// base returns the name of an event without modifiers (cycles:u) and without the kind of core, which
// perf puts before it on machines with several (cpu_core/cycles/).
func base(name string) string {
	base, _, _ := strings.Cut(name, ":")
	return strings.Trim(strings.TrimPrefix(strings.TrimPrefix(base, "cpu_core/"), "cpu_atom/"), "/")
}

func rank(name string) int {
	base := base(name)
	if i := slices.Index(first, base); i >= 0 {
		return i
	}
	return len(first)
}

// InTime reports whether the period of an event of perf's is a duration in ns.
func InTime(k profile.EventKind) bool { return k.CPUTime() || k == profile.EventOffCPU }

// finish completes the profile.
func (r *reader) finish() *profile.Profile {
	p := r.b.Finish()
	order := make([]int, len(r.kinds)) // of the events
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(r.kinds[a].name) - rank(r.kinds[b].name) })
	place := make([]uint16, len(order))
	for to, from := range order {
		k := &r.kinds[from]
		place[from] = uint16(to)
		e := profile.Event{Name: k.name, Kind: Kind(k.name), Unit: "count", Period: 1}
		if k.weighed {
			e.Period = k.weight / max(k.samples, 1)
			if InTime(e.Kind) {
				e.Unit = "nanoseconds"
			}
		}
		p.Events = append(p.Events, e)
	}
	if len(p.Events) == 0 {
		p.Events = []profile.Event{profile.UnnamedSamples()}
	}
	p.Change(func(s *profile.Sample) {
		s.Event = place[s.Event]
		if p.Events[s.Event].Kind.OnCPU() {
			s.State = profile.StateRunning
		}
		if r.timed {
			s.Time -= min(r.first, s.Time)
		}
	})
	p.Losses.Lost = r.lost
	p.Meta.Command, p.Meta.Host, p.Meta.Engine = r.command, r.host, "perf"
	p.Meta.Describe = strings.TrimSpace("recorded by perf " + r.version)
	p.Meta.Duration = time.Duration(r.last - r.first)
	p.Meta.Notes = []string{"perf script does not print which stacks are complete, nor how their frames were found"}
	r.processes(p)
	return p
}

// processes lists those whose numbers are known, with the name of their first thread.
func (r *reader) processes(p *profile.Profile) {
	seen := map[int]int{}
	for _, t := range p.Threads {
		if t.PID <= 0 {
			continue
		}
		i, ok := seen[t.PID]
		if !ok {
			i = len(p.Processes)
			seen[t.PID] = i
			p.Processes = append(p.Processes, profile.Process{PID: t.PID, Command: t.Name})
		}
		if t.TID == t.PID {
			p.Processes[i].Command = t.Name
		}
	}
	if p.Meta.Command == "" && len(p.Processes) == 1 {
		p.Meta.Command = p.Processes[0].Command
	}
}
