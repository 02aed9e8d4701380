package jfr

import (
	"slices"
	"strconv"

	"github.com/candid-profiler/candid/internal/profile"
)

// event appends an event of candid's own with what fields appends to it.
func (s *Stream) event(typ uint64, fields func(b []byte) []byte) {
	from := len(s.b)
	s.b = reserveSize(s.b)
	s.b = appendLong(s.b, typ)
	s.b = appendLong(s.b, tick(s.latest))
	s.b = fields(s.b)
	putSize(s.b, from)
}

// tell writes what has changed of the recording as a whole since it was last written.
func (s *Stream) tell(info *Info) {
	t, m := &s.told, info.Meta
	now := *m
	now.Notes = nil
	if m.Cost != t.cost {
		t.cost = m.Cost
		s.event(typeCost, func(b []byte) []byte {
			c := &m.Cost
			for _, v := range []uint64{uint64(c.Copying), uint64(c.TargetCPU), uint64(c.OwnCPU), c.Memory, uint64(c.FirstWalked), c.Samples, uint64(c.Recorded)} {
				b = appendLong(b, v)
			}
			return b
		})
	}
	// A file that is written in one go gets its name when it is complete.
	now.Unfinished = s.careful && !s.last
	if !s.begun || !sameMeta(&now, &t.meta) {
		t.meta = now
		s.event(typeRecording, func(b []byte) []byte {
			for _, text := range []string{m.Version, m.Engine, m.Describe, m.Command, m.Host} {
				b = appendString(b, text)
			}
			began := uint64(0)
			if !m.Start.IsZero() {
				began = uint64(m.Start.UnixMilli())
			}
			b = appendLong(appendLong(b, began), uint64(m.Duration))
			if now.Unfinished {
				return append(b, 1)
			}
			return append(b, 0)
		})
	}
	s.settings(info.Events)
	for ; t.events < len(info.Events); t.events++ {
		e := &info.Events[t.events]
		s.event(typeEvent, func(b []byte) []byte {
			b = appendString(appendString(appendInt(b, int32(t.events)), e.Name), e.Unit)
			return appendLong(b, e.Period)
		})
		if e.Kind != profile.EventKindOf(e.Name) {
			s.setting(typeEvent, kindSetting+e.Name, e.Kind.String())
		}
	}
	for ; t.notes < len(m.Notes); t.notes++ {
		s.event(typeNote, func(b []byte) []byte {
			return appendString(appendInt(b, int32(t.notes)), m.Notes[t.notes])
		})
	}
	for i, p := range s.c.src.Processes() {
		if i < len(t.processes) && t.processes[i] == p {
			continue
		}
		t.processes = at(t.processes, uint32(i))
		t.processes[i] = p
		s.event(typeProcess, func(b []byte) []byte {
			b = appendLong(appendInt(b, int32(i)), uint64(p.PID))
			return appendString(appendString(b, p.Command), p.Runtime)
		})
	}
	for i, th := range s.c.src.Threads() {
		if i < len(t.threads) && t.threads[i] == th {
			continue
		}
		if i < len(t.threads) && (t.threads[i].Name != th.Name || t.threads[i].Kind != th.Kind) {
			s.c.renamed(i)
		}
		t.threads = at(t.threads, uint32(i))
		t.threads[i] = th
		s.event(typeThreadInfo, func(b []byte) []byte {
			b = appendLong(appendLong(appendLong(b, uint64(i)), uint64(th.PID)), uint64(th.TID))
			b = appendString(appendString(appendString(b, th.Name), th.OSName), th.Kind)
			return appendLong(b, th.KernelCPU)
		})
	}
	s.observations()
	if l := info.Losses; t.losses == nil || *t.losses != l {
		t.losses = &l
		s.event(typeLosses, func(b []byte) []byte { return appendLong(appendLong(b, l.Lost), l.Throttled) })
	}
}

// kindSetting begins the name of a setting of candid.Event that says the kind of an event whose name
// stands for another one.
const kindSetting = "kind:"

// setting writes a setting of a type of events.
func (s *Stream) setting(typ byte, name, value string) {
	s.event(typeActiveSetting, func(b []byte) []byte {
		return appendString(appendString(appendLong(b, uint64(typ)), name), value)
	})
}

// settings writes for new events the settings that async-profiler and its readers use: which event
// ExecutionSamples are of, and how much time a sample stands for.
func (s *Stream) settings(events []profile.Event) {
	for i := s.told.events; i < len(events); i++ {
		e := &events[i]
		typ := s.typeOf(uint16(i), events)
		interval := "interval"
		switch {
		case typ == typeExecutionSample:
			s.setting(typ, "event", e.Name)
		case typ == typeWallClockSample && !slices.ContainsFunc(events, executing):
			s.setting(typ, "event", e.Name)
		case typ == typeWallClockSample:
			interval = "wall"
		default:
			continue
		}
		if e.Unit == "nanoseconds" && e.Period > 0 {
			s.setting(typ, interval, strconv.FormatUint(e.Period, 10))
		}
	}
}

// sameMeta reports whether two descriptions without notes are the same.
func sameMeta(a, b *profile.Meta) bool {
	return a.Start.Equal(b.Start) && a.Duration == b.Duration && a.Host == b.Host && a.Engine == b.Engine &&
		a.Describe == b.Describe && a.Unfinished == b.Unfinished && a.Command == b.Command && a.Version == b.Version
}
