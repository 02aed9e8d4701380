package jfr

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

func ownRecording(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	m, text := r.b.Meta(), c.pools.text
	m.Version, m.Engine, m.Describe, m.Command, m.Host = text(rec.t[0]), text(rec.t[1]), text(rec.t[2]), text(rec.t[3]), text(rec.t[4])
	if rec.n[0] != 0 {
		m.Start = time.Unix(0, r.start)
	}
	m.Duration = time.Duration(max(m.Duration, time.Duration(min(rec.n[1], math.MaxInt64))))
	m.Unfinished = rec.n[2] != 0
	return nil
}

func ownNote(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	if m := r.b.Meta(); rec.n[0] == uint64(len(m.Notes)) {
		m.Notes = append(m.Notes, c.pools.text(rec.t[0]))
	}
	return nil
}

func ownEvent(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	if i := r.ownEvent(c.pools.text(rec.t[0]), rec.n[0]); i < maxEvents {
		e := &r.own.events[i]
		e.Unit, e.Period = c.pools.text(rec.t[1]), rec.n[1]
	}
	return nil
}

// ownSetting reads the kind of an event whose name stands for another one. Such a setting follows
// the description of the event.
func ownSetting(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	name, ok := strings.CutPrefix(c.pools.text(rec.t[0]), kindSetting)
	if t := r.schema.byID[rec.n[0]]; !ok || t == nil || t.name != nameEvent {
		return cur.err
	}
	for i := range r.own.events {
		if e := &r.own.events[i]; e.Name == name {
			e.Kind = profile.StoredEventKind(c.pools.text(rec.t[1]), name)
		}
	}
	return cur.err
}

func ownProcess(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	p := profile.Process{PID: int(rec.n[1]), Command: c.pools.text(rec.t[0]), Runtime: c.pools.text(rec.t[1])}
	switch all := r.b.Processes(); {
	case rec.n[0] < uint64(len(all)):
		all[rec.n[0]] = p
	case rec.n[0] == uint64(len(all)):
		r.b.AddProcess(p)
	}
	return nil
}

func ownThreadInfo(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	name := c.pools.text(rec.t[0])
	i := r.threadBy(threadKey{rec.n[0], rec.n[1], rec.n[2]}, name)
	t := &r.b.Threads()[i]
	t.Name, t.OSName, t.Kind, t.KernelCPU = name, c.pools.text(rec.t[1]), c.pools.text(rec.t[2]), cmp.Or(rec.n[3], t.KernelCPU)
	return nil
}

func ownCost(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	ns := func(i int) time.Duration { return time.Duration(min(rec.n[i], math.MaxInt64)) }
	r.b.Meta().Cost = profile.Cost{Copying: ns(0), TargetCPU: ns(1), OwnCPU: ns(2), Memory: rec.n[3], FirstWalked: ns(4), Samples: rec.n[5], Recorded: ns(6)}
	return nil
}

func ownLosses(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	r.own.losses = profile.Losses{Lost: rec.n[0], Throttled: rec.n[1]}
	return nil
}
