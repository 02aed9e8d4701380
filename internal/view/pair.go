package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
)

// OpenPair makes one recording of two, to be compared: one tree with the stacks
// of both. The threads of after follow those of before, which is how the two are
// told apart. Functions and events are the same as for diff.Join.
func OpenPair(names [2]string, before, after *profile.Profile) (*Recording, error) {
	both := [2]*profile.Profile{before, after}
	for _, p := range both {
		if err := p.Check(); err != nil {
			return nil, err
		}
	}
	p, second := diff.Join(before, after, false)
	p.Meta = after.Meta
	p.Meta.Duration = max(before.Meta.Duration, after.Meta.Duration)
	p.Meta.Notes = append([]string{
		fmt.Sprintf("compared: before is %s (%s), after is %s (%s)", what(before), before.Meta.Duration, what(after), after.Meta.Duration),
	}, after.Meta.Notes...)
	for _, n := range before.Meta.Notes {
		p.Meta.Notes = append(p.Meta.Notes, "before: "+n)
	}
	p.Losses = profile.Losses{Lost: before.Losses.Lost + after.Losses.Lost, Throttled: before.Losses.Throttled + after.Losses.Throttled}
	r, err := Open(names[0]+" → "+names[1], p)
	if err != nil {
		return nil, err
	}
	r.pair, r.second = true, second
	for side := range r.sides {
		r.sides[side] = make([]profile.Count, len(p.Events))
		r.parts[side] = partOf(names[side], both[side], p.Events)
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

// part is what is known of one of two that are compared, besides its samples.
type part struct {
	name      string
	meta      profile.Meta
	losses    profile.Losses
	quality   profile.Quality
	processes []profile.Process
	events    []profile.Event // of both, with the period that they have in this one
	end       uint64          // ns since its beginning
}

func partOf(name string, p *profile.Profile, events []profile.Event) part {
	x := part{name: name, meta: p.Meta, losses: p.Losses, quality: p.Quality(), processes: p.Processes, events: slices.Clone(events), end: uint64(max(p.Meta.Duration, 0))}
	for i := range x.events {
		e := &x.events[i]
		e.Period = 0
		for _, own := range p.Events {
			if own.Name == e.Name && own.Unit == e.Unit {
				e.Period = own.Period
			}
		}
	}
	if p.HasTimes() {
		for i := range p.Samples {
			x.end = max(x.end, p.Samples[i].Time+1)
		}
	}
	return x
}

// partJSON is what the page shows of one of two in columns beside each other.
type partJSON struct {
	Name     string          `json:"name"`
	Command  string          `json:"command"`
	Host     string          `json:"host"`
	Start    string          `json:"start"`    // RFC 3339, "" if unknown
	Duration float64         `json:"duration"` // seconds
	Engine   string          `json:"engine"`
	Describe string          `json:"describe"`
	Candid   string          `json:"candid"`
	Notes    []string        `json:"notes"`
	Lost     uint64          `json:"lost"`
	Throttle uint64          `json:"throttled"`
	Quality  flame.Quality   `json:"quality"`
	Process  []flame.Process `json:"processes"`
	Periods  []uint64        `json:"periods"` // by event, 0 where it varies or is not there
	Sums     []countJSON     `json:"sums"`    // by event
	Cost     costJSON        `json:"cost"`
	End      uint64          `json:"end"` // ns
}

func (r *Recording) partJSON(side int) partJSON {
	x := &r.parts[side]
	m := x.meta
	out := partJSON{
		Name: flame.Visible(x.name), Command: flame.Visible(m.Command), Host: flame.Visible(m.Host), Duration: m.Duration.Seconds(),
		Engine: flame.Visible(m.Engine), Describe: flame.Visible(m.Describe), Candid: flame.Visible(m.Version), Notes: []string{},
		Lost: x.losses.Lost, Throttle: x.losses.Throttled, Quality: flame.NewQuality(x.quality), Process: []flame.Process{},
		Periods: []uint64{}, Sums: []countJSON{}, Cost: newCost(m.Cost), End: x.end,
	}
	if !m.Start.IsZero() {
		out.Start = m.Start.Format(time.RFC3339)
	}
	for _, n := range m.Notes {
		out.Notes = append(out.Notes, flame.Visible(n))
	}
	for _, p := range x.processes {
		out.Process = append(out.Process, flame.Process{PID: p.PID, Command: flame.Visible(p.Command), Runtime: flame.Visible(p.Runtime)})
	}
	for i, e := range x.events {
		out.Periods = append(out.Periods, e.Period)
		out.Sums = append(out.Sums, countJSON(r.sides[side][i]))
	}
	return out
}

// only gives the recording's profile with the kernel's account of one side's threads
// alone: what the other's threads used says nothing of these.
func (r *Recording) only(side Side) *profile.Profile {
	if side == Both {
		return r.p
	}
	p := *r.p
	p.Threads = slices.Clone(r.p.Threads)
	for i := range p.Threads {
		if (uint32(i) >= r.second) != (side == After) {
			p.Threads[i].KernelCPU = 0
		}
	}
	return &p
}

func what(p *profile.Profile) string {
	if p.Meta.Command != "" {
		return p.Meta.Command
	}
	return "a recording that does not say of what"
}
