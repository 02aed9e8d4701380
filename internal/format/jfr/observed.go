package jfr

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/redact"
)

// observationPlan is how events of a kind are read: which field of the kind each field of the type
// is.
type observationPlan struct {
	plan  *plan
	field []int    // by step: index into the kind's fields, or one of these
	names []uint64 // by step: the type of constants that are names; 0: not a name
	short []bool   // by step: a 32-bit integer, which may be negative
}

const (
	fieldNone     = -1
	fieldTime     = -2
	fieldDuration = -3
	fieldProcess  = -4
)

// observationReaders creates the readers of observations, whichever profiler wrote the file: the
// JDK's own events have the same names and fields.
func (s *schema) observationReaders(rs *readers) error {
	for i := range profile.ObservationKinds {
		k, def := &profile.ObservationKinds[i], &observationDefs[i]
		t := s.byName[def.name]
		if t == nil || t.super != superEvent || rs.events[t.id] != nil || !t.hasAll([]string{"startTime", def.fields[0].name}) {
			continue
		}
		p, err := s.planOf(t)
		if err != nil {
			return err
		}
		seen := &observationPlan{plan: p, field: make([]int, len(p.steps)), names: make([]uint64, len(p.steps)), short: make([]bool, len(p.steps))}
		for j := range p.steps {
			f := &t.fields[p.steps[j].field]
			of := s.byID[f.typ]
			seen.field[j] = fieldOf(i, f, &p.steps[j])
			if seen.field[j] >= 0 && k.Values[seen.field[j]] == profile.ValueThread {
				if of == nil || of.name != nameThread {
					seen.field[j] = fieldNone
				}
				continue
			}
			seen.short[j] = of != nil && of.name == "int" && !f.constant
			if f.constant && seen.field[j] >= 0 {
				if !rs.name(s, of) {
					seen.field[j] = fieldNone
				}
				seen.names[j] = f.typ
			}
		}
		h := &eventReader{seen: seen, row: i, read: observation}
		if t.id < uint64(len(rs.few)) {
			rs.few[t.id] = h
		}
		rs.events[t.id] = h
	}
	return nil
}

// fieldOf returns what a field of a type is for a kind.
func fieldOf(kind int, f *field, st *step) int {
	if st.array {
		return fieldNone
	}
	if st.op == opLong && !f.constant {
		switch f.name {
		case "startTime":
			return fieldTime
		case "duration":
			return fieldDuration
		case "process":
			return fieldProcess
		}
	}
	for i, known := range observationDefs[kind].fields {
		if known.name != f.name {
			continue
		}
		fits := false
		switch profile.ObservationKinds[kind].Values[i] {
		case profile.ValueThread:
			fits = f.constant
		case profile.ValueText:
			fits = st.op == opText || f.constant
		case profile.ValueShare:
			fits = st.op == opFour
		case profile.ValueFloat:
			fits = st.op == opEight
		case profile.ValueFlag:
			fits = st.op == opByte
		default:
			fits = (st.op == opLong || st.op == opByte) && !f.constant
		}
		if fits {
			return i
		}
	}
	return fieldNone
}

// name makes the constants of a type be read as names, if they are nothing else.
func (rs *readers) name(s *schema, t *class) bool {
	if t == nil || len(t.fields) != 1 {
		return false
	}
	if rs.pools[t.id] != nil {
		return rs.pools[t.id].name
	}
	sl, err := s.slotsOf(t, nil, []string{t.fields[0].name})
	if err != nil {
		return false
	}
	id := t.id
	rs.pools[id] = &poolReader{sl, func(p *pools, n uint64, r *record) {
		if p.names == nil {
			p.names = map[[2]uint64]text{}
		}
		p.names[[2]uint64{id, n}] = r.t[0]
	}, true}
	return true
}

// maxObservations bounds how many are kept of a file: an hour of 16 processes has half a million.
const maxObservations = 1 << 22

// masked masks secrets that other recorders wrote unmasked.
func masked(o *profile.Observation) {
	switch o.Kind {
	case profile.InitialSystemProperty, profile.StringFlag:
		o.Values[1].Text = redact.Value(o.Values[0].Text, o.Values[1].Text)
	}
}

// observation reads one observation.
func observation(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	k := &profile.ObservationKinds[h.row]
	o := profile.Observation{Kind: uint16(h.row), Process: -1, Values: make([]profile.Value, len(k.Values))}
	for i := range k.Values {
		if k.Values[i] < profile.ValueShare {
			o.Values[i].Number = profile.UnknownNumber
		}
	}
	pid := uint64(0)
	for i := range h.seen.plan.steps {
		st, to := &h.seen.plan.steps[i], h.seen.field[i]
		switch {
		case st.array:
			for range st.count(cur) {
				if st.skip(cur); cur.err != nil {
					return cur.err
				}
			}
		case to == fieldNone:
			st.skip(cur)
		case to == fieldTime:
			o.Time = c.ns(cur.long())
		case to == fieldDuration:
			o.Duration = c.span(cur.long())
		case to == fieldProcess:
			pid = cur.long()
		default:
			if k.Values[to] != profile.ValueThread {
				o.Values[to] = h.seen.value(c, cur, i, k.Values[to])
			} else if err := r.observedThread(c, cur.long(), &o.Values[to]); err != nil {
				return err
			}
		}
	}
	if cur.err != nil || len(r.pids) >= maxObservations {
		return cur.err
	}
	if !r.readers.ours {
		masked(&o)
	}
	r.latest = max(r.latest, o.Time)
	r.b.Observe(o)
	r.pids = append(r.pids, pid)
	return nil
}

// observedThread returns the profile's thread for a constant; 0 is none.
func (r *reader) observedThread(c *chunk, id uint64, v *profile.Value) error {
	if id == 0 {
		return nil
	}
	if !r.readers.ours {
		v.Number = uint64(r.foreignThread(c, id))
		return nil
	}
	i, ok := r.ownThread(c, id)
	if !ok {
		return fmt.Errorf("%w: its thread, %d", errNotThere, id)
	}
	v.Number = uint64(i)
	return nil
}

func (p *observationPlan) value(c *chunk, cur *cursor, i int, t profile.ValueType) profile.Value {
	switch op := p.plan.steps[i].op; {
	case p.names[i] != 0:
		return profile.Text(c.pools.text(c.pools.names[[2]uint64{p.names[i], cur.long()}]))
	case op == opText:
		return profile.Text(c.pools.text(cur.text()))
	case op == opFour:
		if cur.left() < 4 {
			cur.fail(errShort)
			return profile.Value{}
		}
		cur.pos += 4
		v := math.Float32frombits(binary.BigEndian.Uint32(cur.b[cur.pos-4:]))
		return profile.Share(float64(v))
	case op == opEight:
		if cur.left() < 8 {
			cur.fail(errShort)
			return profile.Value{}
		}
		cur.pos += 8
		return profile.Number(binary.BigEndian.Uint64(cur.b[cur.pos-8:]))
	case op == opByte:
		return profile.Number(uint64(cur.byte()))
	}
	v := cur.long()
	if p.short[i] {
		v = uint64(int64(int32(v)))
	}
	if t == profile.ValueNanos && v != profile.UnknownNumber {
		v = c.span(v)
	}
	return profile.Number(v)
}

// placeObservations finds the processes that observations belong to, now that all are known: the
// JDK's belong to the only one there is.
func (r *reader) placeObservations(p *profile.Profile) {
	of := map[uint64]int32{}
	for i := range p.Processes {
		of[uint64(p.Processes[i].PID)] = int32(i)
	}
	for i := range p.Observations {
		if index, ok := of[r.pids[i]]; ok && r.pids[i] != 0 {
			p.Observations[i].Process = index
		} else if !r.readers.ours && len(p.Processes) == 1 {
			p.Observations[i].Process = 0
		}
	}
}
