package view

import (
	"fmt"
	"slices"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
)

// OpenPair makes one recording of two that are compared: one tree with the stacks of both. The
// threads of after follow those of before, which is how the two are told apart. Functions and
// events are matched as by diff.Join.
func OpenPair(names [2]string, before, after *profile.Profile) (*Recording, error) {
	both := [2]*profile.Profile{before, after}
	for _, p := range both {
		if err := p.Check(); err != nil {
			return nil, err
		}
	}
	p, second := diff.Join(before, after, false)
	notes := p.Meta.Notes
	p.Meta = after.Meta
	p.Meta.Duration = max(before.Meta.Duration, after.Meta.Duration)
	p.Meta.Notes = append([]string{
		fmt.Sprintf("compared: before is %s (%s), after is %s (%s)", what(before), before.Meta.Duration, what(after), after.Meta.Duration),
	}, append(notes, after.Meta.Notes...)...)
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
	for side := range r.sides {
		for i, c := range r.sides[side] {
			r.parts[side].Sums[i] = countJSON(c)
		}
	}
	return r, nil
}

// part describes one of two recordings that are compared, without its samples. Columns hold those
// of both side by side.
type part struct {
	Name string `json:"name"`
	flame.About
	Periods []uint64    `json:"periods"` // by event of both, 0 if it varies or does not exist
	Sums    []countJSON `json:"sums"`    // by event
	Cost    costJSON    `json:"cost"`
	End     uint64      `json:"end"` // ns since its beginning
}

func partOf(name string, p *profile.Profile, events []profile.Event) part {
	x := part{
		Name: flame.Visible(name), About: flame.NewAbout(p), Periods: make([]uint64, len(events)), Sums: make([]countJSON, len(events)),
		Cost: newCost(p.Meta.Cost), End: uint64(max(p.Meta.Duration, 0)),
	}
	for i, e := range events {
		for _, own := range p.Events {
			if own.Name == e.Name && own.Unit == e.Unit {
				x.Periods[i] = own.Period
			}
		}
	}
	if p.HasTimes() {
		for i := range p.Samples {
			x.End = max(x.End, p.Samples[i].Time+1)
		}
	}
	return x
}

// only returns the recording's profile with the kernel's figures for one side's threads only: what
// the other side's threads used says nothing about these.
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
