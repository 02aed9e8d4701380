package jfr

import (
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// finishForeign describes the events of a recording that candid did not write,
// now that all settings are known.
func (r *reader) finishForeign() {
	f := &r.foreign
	if r.readers.ours && len(f.events) == 0 {
		return
	}
	m := r.b.Meta()
	m.Start = time.Unix(0, r.start)
	m.Engine, m.Describe = "jfr", "recorded by the JVM's Flight Recorder"
	if f.sampled != "" {
		m.Engine, m.Describe = "async-profiler", "recorded by async-profiler, event "+f.sampled
	}
}

// foreignFinal puts the events of such a profile in their order and gives samples
// the weight that a setting says.
func (r *reader) foreignFinal(p *profile.Profile) {
	f := &r.foreign
	if len(f.events) == 0 {
		if len(p.Events) == 0 {
			p.Events = []profile.Event{{Name: "samples", Unit: "count", Period: 1}}
		}
		return
	}
	p.Losses.Lost += f.lost
	for i := range p.Threads {
		p.Threads[i].PID = f.pid // which the recording tells at some place
	}
	order := slices.Clone(f.events)
	slices.Sort(order)
	of, period := make([]uint16, len(order)), make([]uint64, len(order))
	for i, row := range order {
		e := &foreignEvents[row]
		event := profile.Event{Name: e.event, Unit: "count", Period: 1}
		period[i] = 1
		switch {
		case e.unit == inBytes:
			event.Unit, event.Period = "bytes", 0
		case e.unit == inTicks:
			event.Unit, event.Period = "nanoseconds", 0
		default:
			ns := f.periods[e.event]
			if f.sampled != "" {
				ns = f.periods[map[bool]string{true: "interval", false: "wall"}[e.unit == counted]]
				if e.unit == counted {
					event.Name = f.sampled
				}
			}
			if ns > 0 && (f.sampled == "" || e.unit == repeated || asyncCPU(f.sampled)) {
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

// asyncCPU says whether the interval of an event of async-profiler's is CPU time
// in ns.
func asyncCPU(event string) bool { return event == "cpu" || event == "itimer" || event == "ctimer" }
