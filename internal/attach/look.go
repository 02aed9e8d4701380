package attach

import (
	"errors"
	"slices"

	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/runtimes/supported"
	"github.com/candid-profiler/candid/internal/target"
)

// Finders look for all known runtimes, in many processes. They are used from one goroutine.
type Finders struct{ of []finder }

type finder struct {
	*runtimes.Runtime
	runtimes.Finder
}

// NewFinders returns Finders that have seen no file.
func NewFinders() *Finders {
	f := &Finders{}
	for _, r := range supported.Runtimes {
		f.of = append(f.of, finder{r, r.Finder()})
	}
	return f
}

// Found is a runtime that was found.
type Found struct {
	Runtime  *runtimes.Runtime
	Instance runtimes.Instance
}

// Missing is a runtime that may still appear. Err is why it was not found: runtimes.ErrAbsent,
// runtimes.ErrNotReady, or why it cannot be read.
type Missing struct {
	Runtime *runtimes.Runtime
	Err     error
}

// Looking reports whether there are runtimes left for Look to look for.
func (p *Process) Looking() bool { return len(p.wanted) > 0 }

// Launched reports whether one of the runtimes is the program's, and the program's own file is only
// a launcher for it; see runtimes.Runtime.
func (p *Process) Launched() bool {
	for at, i := range p.found {
		if i != nil && p.o.Finders.of[at].Launched {
			return true
		}
	}
	return false
}

// Loads reports whether one of the runtimes loads images that engines do not report; see runtimes.Runtime.
func (p *Process) Loads() bool {
	for at, i := range p.found {
		if i != nil && p.o.Finders.of[at].Loads {
			return true
		}
	}
	return false
}

// MayFind reports whether any of the mappings may be one of the runtimes that are still looked for,
// from what is known of files: most programs map a few files that all others map too.
func (p *Process) MayFind() bool {
	return p.Native.Mapped(func(m *native.Module) bool { return p.MayHold(m.Mapping) })
}

// MayHold is MayFind for one mapping.
func (p *Process) MayHold(m target.Mapping) bool {
	return slices.ContainsFunc(p.wanted, func(i int) bool { return !p.o.Finders.of[i].Without(m) })
}

// Look looks for the runtimes that were not found yet. If it finds any, the process gets another
// Walker and other Resolvers.
func (p *Process) Look() (found []Found, missing []Missing) {
	p.wanted = slices.DeleteFunc(p.wanted, func(at int) bool {
		f := &p.o.Finders.of[at]
		i, err := f.Open(p.Target, p.Native)
		if err == nil {
			if c, ok := i.(runtimes.Clocked); ok && p.o.Clock != nil {
				c.SetClock(p.o.Clock)
			}
			p.found[at] = i
			found = append(found, Found{f.Runtime, i})
			return true
		}
		if f.AtStart && errors.Is(err, runtimes.ErrAbsent) {
			return true
		}
		missing = append(missing, Missing{f.Runtime, err})
		return false
	})
	if len(found) > 0 {
		p.build()
	}
	return found, missing
}
