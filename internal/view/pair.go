package view

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/profile"
)

// OpenPair makes one recording of two, to be compared: one tree with the stacks
// of both. The threads of after follow those of before, which is how the two are
// told apart. Events are the same if name and unit are.
func OpenPair(name string, before, after *profile.Profile) (*Recording, error) {
	for _, p := range []*profile.Profile{before, after} {
		if err := p.Check(); err != nil {
			return nil, err
		}
	}
	b := profile.NewBuilder()
	add(b, before)
	split := len(b.Threads())
	add(b, after)
	p := b.Finish()
	p.Meta = after.Meta
	p.Meta.Duration = max(before.Meta.Duration, after.Meta.Duration)
	p.Meta.Notes = append([]string{
		fmt.Sprintf("compared: before is %s (%s), after is %s (%s)", what(before), before.Meta.Duration, what(after), after.Meta.Duration),
	}, after.Meta.Notes...)
	for _, n := range before.Meta.Notes {
		p.Meta.Notes = append(p.Meta.Notes, "before: "+n)
	}
	p.Losses = profile.Losses{Lost: before.Losses.Lost + after.Losses.Lost, Throttled: before.Losses.Throttled + after.Losses.Throttled}
	r, err := Open(name, p)
	if err != nil {
		return nil, err
	}
	r.pair, r.second = true, uint32(split)
	for side := range r.sides {
		r.sides[side] = make([]profile.Count, len(p.Events))
	}
	for i := range p.Samples {
		s := &p.Samples[i]
		side := 0
		if s.Thread >= r.second {
			side = 1
		}
		r.sides[side][s.Event].Add(profile.Count{Samples: 1, Weight: s.Weight})
	}
	return r, nil
}

func what(p *profile.Profile) string {
	if p.Meta.Command != "" {
		return p.Meta.Command
	}
	return "a recording that does not say of what"
}

// add adds all of p to b. Processes and threads stay apart from those that are
// there.
func add(b *profile.Builder, p *profile.Profile) {
	out := b.Profile()
	events := make([]uint16, len(p.Events))
	for i, e := range p.Events {
		at, ok := out.EventByName(e.Name)
		if !ok || out.Events[at].Unit != e.Unit {
			at = len(out.Events)
			out.Events = append(out.Events, e)
		}
		events[i] = uint16(at)
	}
	for _, x := range p.Processes {
		b.AddProcess(x)
	}
	threads := make([]uint32, len(p.Threads))
	for i, t := range p.Threads {
		threads[i] = b.NewThread(t.PID, t.TID, t.Name)
		b.Threads()[threads[i]] = t
	}
	frames := make([]uint32, len(p.Frames))
	for i, f := range p.Frames {
		f.Func = b.Func(p.Funcs[f.Func])
		frames[i] = b.Frame(f)
	}
	nodes := make([]uint32, len(p.Nodes))
	for i := 1; i < len(nodes); i++ {
		nodes[i] = b.Node(nodes[p.Nodes[i].Parent], frames[p.Nodes[i].Frame])
	}
	for _, s := range p.Samples {
		s.Event, s.Thread, s.Node = events[s.Event], threads[s.Thread], nodes[s.Node]
		if len(p.Syscalls) > 0 {
			s.Syscall = b.Syscall(p.Syscalls[s.Syscall])
		}
		b.Add(s)
	}
}
