package diff

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/profile"
)

// Choose returns both recordings with only the event that is asked for, or else the first event
// that both have, preferably one of which both have samples, and only what the filter leaves. The
// error wraps ErrIncomparable or one of package filter.
func Choose(names [2]string, recordings [2]*profile.Profile, spec *filter.Spec) (sides [2]Side, err error) {
	events, err := common(names, recordings, spec.Event())
	if err != nil {
		return sides, err
	}
	for i, p := range recordings {
		if len(p.Events) > 1 {
			p = profile.Only(p, events[i])
		}
		if p.SampleCount() == 0 {
			return sides, fmt.Errorf("%s: %w of %s", names[i], filter.ErrEmpty, p.Events[0].Name)
		}
		f, err := spec.For(p)
		if err != nil {
			return sides, fmt.Errorf("%s: %w", names[i], err)
		}
		left, n, err := spec.Apply(p, 0)
		if err != nil {
			return sides, fmt.Errorf("%s: %w", names[i], err)
		}
		end := filter.Length(p)
		if f.To > 0 {
			end = min(end, f.To)
		}
		sides[i] = Side{Name: names[i], Profile: profile.Weighed(left), Passed: n.Left, All: n.All, Unknown: n.Unknown, Span: end - f.From}
	}
	return sides, nil
}

// common returns for both recordings the index of the event to compare.
func common(names [2]string, recordings [2]*profile.Profile, name string) (at [2]int, err error) {
	for i, p := range recordings {
		if len(p.Events) == 0 {
			return at, fmt.Errorf("%s: %w", names[i], filter.ErrEmpty)
		}
	}
	if name != "" {
		for i, p := range recordings {
			ok := false
			if at[i], ok = filter.EventOf(p, name); !ok {
				return at, fmt.Errorf("%w: %s has no event %q: it has %s", ErrIncomparable, names[i], name, p.EventNames())
			}
		}
		return at, nil
	}
	best := -1
	for i, e := range recordings[0].Events {
		k, ok := recordings[1].EventByName(e.Name)
		if !ok || !sameEvent(e, recordings[1].Events[k]) {
			continue
		}
		samples := 0 // how many of the two sides have any
		for side, event := range [2]int{i, k} {
			if recordings[side].Sampled(event) {
				samples++
			}
		}
		if samples > best {
			best, at = samples, [2]int{i, k}
		}
	}
	if best < 0 {
		at = [2]int{recordings[0].FirstEvent(), recordings[1].FirstEvent()}
	}
	return at, nil
}
