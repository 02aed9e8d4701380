package jfr

import (
	"cmp"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// finishForeign describes the events of a recording that candid did not write, now that all
// settings are known.
func (r *reader) finishForeign() {
	f := &r.foreign
	if r.readers.ours && len(f.events) == 0 {
		return
	}
	m := r.b.Meta()
	m.Start = time.Unix(0, r.start)
	m.Engine, m.Describe = "jfr", "recorded by the JVM's Flight Recorder"
	if f.async {
		m.Engine, m.Describe = "async-profiler", "recorded by async-profiler"
		if f.sampled != "" {
			m.Describe += ", event " + f.sampled
		}
	}
}

// foreignFinal sorts the events of such a profile and gives samples the weight that a setting
// defines.
func (r *reader) foreignFinal(p *profile.Profile) {
	f := &r.foreign
	if len(f.events) == 0 {
		if len(p.Events) == 0 {
			p.Events = []profile.Event{profile.UnnamedSamples()}
		}
		return
	}
	p.Losses.Lost += f.lost
	for i := range p.Threads {
		p.Threads[i].PID = f.pid // the recording contains it at some point
	}
	order := slices.Clone(f.events)
	slices.Sort(order)
	of, period := make([]uint16, len(order)), make([]uint64, len(order))
	for i, row := range order {
		e := &foreignEvents[row]
		event := profile.Event{Name: e.event, Kind: e.kind, Unit: "count", Period: 1}
		period[i] = 1
		switch {
		case e.unit == inBytes:
			event.Unit, event.Period = "bytes", 0
		case e.unit == inTicks:
			event.Unit, event.Period = "nanoseconds", 0
		default:
			ns := f.periods[e.event]
			if f.async || f.sampled != "" {
				if e.typ == nameExecutionSample && f.sampled != "" {
					event.Name, event.Kind = f.sampled, profile.EventKindOf(f.sampled)
				}
				ns = cmp.Or(f.asyncPeriod(event.Name), ns)
			}
			if ns > 0 {
				event.Unit, event.Period, period[i] = "nanoseconds", ns, ns
			}
		}
		of[slices.Index(f.events, row)] = uint16(i)
		p.Events = append(p.Events, event)
	}
	p.Change(func(s *profile.Sample) {
		s.Event = of[s.Event]
		s.Weight *= period[s.Event]
		if e := &p.Events[s.Event]; foreignEvents[order[s.Event]].unit == repeated && e.Spans(s.State) && s.Weight > e.Period {
			s.Time = later(s.Time, s.Weight-e.Period) // its time is that of the first of them
		}
	})
	p.SortByTime()
}

// async-profiler's default intervals, ns.
const (
	asyncInterval = 10_000_000
	asyncWall     = 50_000_000
)

// asyncPeriod returns how many ns a sample of async-profiler stands for; 0 if it does not stand for
// time.
func (f *foreignState) asyncPeriod(event string) uint64 {
	var ns, usual uint64
	switch {
	case event == "cpu" || event == "itimer" || event == "ctimer", event == f.sampled && !f.async: // candid writes this for time only
		ns, usual = f.periods["interval"], asyncInterval
	case event == "wall" && f.sampled == "wall":
		ns, usual = f.periods["interval"], asyncWall
	case event == "wall":
		ns, usual = f.periods["wall"], asyncWall
	}
	if ns == 0 && f.async {
		return usual
	}
	return ns
}

// twofold reports whether async-profiler sampled CPU time and wall time. Version 2 writes
// both as ExecutionSamples: those of CPU time have no state then.
func (f *foreignState) twofold() bool {
	_, wall := f.periods["wall"]
	return wall && f.sampled != "" && f.sampled != "wall"
}
