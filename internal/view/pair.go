package view

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/profile"
)

// OpenPair makes one recording of two, to be compared: one tree with the stacks
// of both. The threads of after follow those of before, which is how the two are
// told apart. Functions and events are the same as for diff.Join.
func OpenPair(name string, before, after *profile.Profile) (*Recording, error) {
	for _, p := range []*profile.Profile{before, after} {
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
	r, err := Open(name, p)
	if err != nil {
		return nil, err
	}
	r.pair, r.second = true, second
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
