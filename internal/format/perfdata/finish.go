package perfdata

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/format/perfscript"
	"github.com/candid-profiler/candid/internal/profile"
)

// finish completes the profile.
func (r *reader) finish() *profile.Profile {
	describe := r.describe()
	p := r.b.Finish()
	place := r.events(p)
	p.Change(func(s *profile.Sample) {
		s.Event = place[s.Event]
		s.Time -= min(r.first, s.Time)
	})
	p.Losses = profile.Losses{Lost: max(r.lost, r.lostLate), Throttled: r.throttle}
	m := &p.Meta
	m.Host, m.Engine, m.Describe = r.about.host, "perf", describe
	m.Duration = time.Duration(r.last - min(r.first, r.last))
	m.Command = strings.Join(r.about.command, " ")
	if m.Command == "" && len(p.Processes) == 1 {
		m.Command = p.Processes[0].Command
	}
	if r.about.wall != 0 {
		m.Start = time.Unix(0, int64(r.about.wall+r.first-r.about.at)).UTC()
	}
	m.Notes = r.notes(p.SampleCount())
	return p
}

// events lists the events that have samples, in the order in which they were given to perf, and
// returns the index of each in that order.
func (r *reader) events(p *profile.Profile) []uint16 {
	place := make([]uint16, len(r.kinds))
	for _, a := range r.attrs {
		if a.event < 0 {
			continue
		}
		e := profile.Event{Name: a.label(), Kind: a.kind, Unit: "count", Period: a.period}
		if a.flags&flagFreq != 0 {
			e.Period = r.weights[a.event] / max(r.counts[a.event], 1)
		}
		if perfscript.InTime(e.Kind) {
			e.Unit = "nanoseconds"
		}
		// perf has one name for the same event in programs and in the kernel.
		for i := 2; slices.ContainsFunc(p.Events, func(o profile.Event) bool { return o.Name == e.Name }); i++ {
			e.Name = fmt.Sprintf("%s#%d", a.label(), i)
		}
		place[a.event] = uint16(len(p.Events))
		p.Events = append(p.Events, e)
	}
	if len(p.Events) == 0 {
		a := r.attrs[0]
		p.Events = []profile.Event{{Name: a.label(), Kind: a.eventKind(), Unit: "count", Period: 1}}
	}
	return place
}

// notes returns what was not available.
func (r *reader) notes(samples uint64) []string {
	var notes []string
	if r.cut {
		notes = append(notes, "the recording is cut off: what came after is missing")
	}
	switch {
	case samples == 0:
	case r.bare == samples:
		notes = append(notes, "it was recorded without call chains (perf record -g): each stack is one frame")
	case !r.copied:
		notes = append(notes, "perf followed frame pointers, which says nothing of whether a stack is complete: code without them cuts it or hides a caller")
	}
	if r.names.why != "" && r.kernelSeen {
		notes = append(notes, r.names.why)
	}
	missing := slices.SortedFunc(maps.Keys(r.files.missing), func(a, b string) int { return cmp.Compare(a, b) })
	const most = 3
	for i, path := range missing {
		if i == most {
			notes = append(notes, fmt.Sprintf("and %d files more", len(missing)-most))
			break
		}
		notes = append(notes, "functions of this file have no names: "+r.files.missing[path])
	}
	return notes
}
