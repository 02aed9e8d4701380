package jfr

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// ownPools are the constants of a chunk that candid wrote.
type ownPools struct {
	frameKinds, provenances table[text]
	states, ends, syscalls  table[text]
	functions               table[[7]uint64]
	frames                  table[[7]uint64]
	kinds                   table[ownKind]
	samples                 table[profile.Sample] // the decoded kinds, as they occur
	runs, stackRuns         []run

	funcOf, frameOf table[uint32] // of the profile
	nodes           row           // of the profile
	stacks          row           // of the profile: nodes by numbers of traces
}

// run is a constant of many nodes: the number of the first one, and what constants.node wrote.
type run struct {
	first uint64
	data  []byte
}

type ownKind struct {
	numbers [8]uint64 // in the order of wanted
	event   text
	labels  text
}

// ownState is what is known from candid's own events.
type ownState struct {
	events   []profile.Event
	losses   profile.Losses
	syscalls []string
	labels   [][]profile.Label // as Profile.Labels
	labelled map[string][]profile.Label
	threads  map[threadKey]uint32
}

type threadKey struct{ number, pid, tid uint64 }

// ownConstants makes functions, frames and nodes from the constants of a chunk.
func (r *reader) ownConstants(c *chunk) error {
	o := &c.pools.own
	kinds := named(c, &o.frameKinds, profile.KindByName)
	provs := named(c, &o.provenances, provenanceByName)
	var err error
	gate := r.b.Meter().Gate()
	o.functions.each(func(id uint64, f [7]uint64) {
		if err == nil {
			err = gate.Pass()
			o.funcOf.put(id, r.ownFunction(c, id, &f))
		}
	})
	if err != nil {
		return err
	}
	o.frames.each(func(id uint64, f [7]uint64) {
		fn, ok := o.funcOf.get(f[0])
		if !ok {
			err = fmt.Errorf("%w: frame %d is of function %d, which is not there", ErrMalformed, id, f[0])
			return
		}
		if err != nil {
			return
		}
		err = gate.Pass()
		o.frameOf.put(id, r.b.Frame(profile.Frame{
			Func: fn, Line: int32(f[1]), BCI: int32(f[2]) - 1, Kind: kinds[f[3]], Prov: provs[f[4]], Flags: walk.FrameFlags(f[5]), Addr: f[6],
		}))
	})
	if err != nil {
		return err
	}
	for i := range o.runs {
		if err := r.nodes(o, &o.runs[i]); err != nil {
			return err
		}
	}
	for i := range o.stackRuns {
		if err := cmp.Or(o.ofStacks(&o.stackRuns[i]), r.b.Meter().Check()); err != nil {
			return err
		}
	}
	o.syscalls.each(func(id uint64, name text) {
		const most = 1<<16 - 1 // the limit of a Builder
		if id > 0 && id <= most {
			r.own.syscalls = at(r.own.syscalls, uint32(id))
			r.own.syscalls[id] = c.pools.text(name)
		}
	})
	o.functions, o.frames, o.runs = table[[7]uint64]{}, table[[7]uint64]{}, nil
	o.stackRuns = nil
	c.calls = len(r.own.syscalls)
	r.scratch.reset()
	return nil
}

// named reads a pool of names as the values they stand for, by number.
func named[T any](c *chunk, t *table[text], by func(string) (T, bool)) map[uint64]T {
	m := map[uint64]T{}
	t.each(func(id uint64, name text) {
		if v, ok := by(c.pools.text(name)); ok {
			m[id] = v
		}
	})
	return m
}

func provenanceByName(name string) (walk.Provenance, bool) {
	for p, n := range provenanceNames {
		if n == name {
			return walk.Provenance(p), true
		}
	}
	return walk.Heuristic, false
}

func endByName(name string) (walk.End, bool) {
	for e := range walk.NumEnds {
		if e.String() == name {
			return e, true
		}
	}
	return walk.EndNoRule, false
}

func (r *reader) ownFunction(c *chunk, id uint64, f *[7]uint64) uint32 {
	p := &c.pools
	fn := profile.Func{
		Name: p.symbol(f[0]), Raw: p.symbol(f[1]), Signature: p.symbol(f[2]), Module: p.symbol(f[3]), File: p.symbol(f[4]), NoName: f[5] != 0, Start: int32(f[6]),
	}
	if f[0] == 0 {
		m, _ := p.methods.get(id)
		class, _ := p.classes.get(m.class)
		fn.Name = joined(p.symbol(class), p.symbol(m.name))
	}
	return r.b.Func(fn)
}

// nodes reads a run of nodes.
func (r *reader) nodes(o *ownPools, u *run) error {
	b := u.data
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			b = nil
			return math.MaxUint64
		}
		b = b[n:]
		return v
	}
	gate := r.b.Meter().Gate()
	for id := u.first; len(b) > 0; {
		parent, ok := o.node(number())
		n := number()
		if !ok || n > uint64(len(b)) {
			return fmt.Errorf("%w: the stacks from %d on have no caller, or no end", ErrMalformed, u.first)
		}
		for range n {
			f, ok := o.frameOf.get(number())
			if !ok {
				return fmt.Errorf("%w: node %d has a frame that is not there", ErrMalformed, id)
			}
			if err := gate.Pass(); err != nil {
				return err
			}
			parent = r.b.Node(parent, f)
			o.nodes.put(id, parent)
			id++
		}
	}
	return nil
}

// ofStacks reads which nodes the stacks for other readers stand for.
func (o *ownPools) ofStacks(u *run) error {
	number := int64(0)
	for id, b := u.first, u.data; len(b) > 0; id++ {
		v, n := binary.Varint(b)
		number += v
		node, ok := o.node(uint64(number))
		if n <= 0 || !ok {
			return fmt.Errorf("%w: stack %d stands for a node that is not there", ErrMalformed, id)
		}
		b = b[n:]
		o.stacks.put(id, node)
	}
	return nil
}

// node returns the profile's node by its number in the file.
func (o *ownPools) node(id uint64) (uint32, bool) {
	if id == 0 {
		return root, true
	}
	return o.nodes.get(id)
}

// row holds values whose numbers are mostly consecutive, from some number on.
type row struct {
	first uint64
	list  []uint32
	rest  map[uint64]uint32
}

func (r *row) put(id uint64, v uint32) {
	if len(r.list) == 0 {
		r.first = id
	}
	switch i := id - r.first; {
	case i < uint64(len(r.list)):
		r.list[i] = v
	case i == uint64(len(r.list)):
		r.list = append(r.list, v)
	default:
		if r.rest == nil {
			r.rest = map[uint64]uint32{}
		}
		r.rest[id] = v
	}
}

func (r *row) get(id uint64) (uint32, bool) {
	if i := id - r.first; i < uint64(len(r.list)) {
		return r.list[i], true
	}
	v, ok := r.rest[id]
	return v, ok
}

// Numbers of a sample of candid's own.
const (
	sampleTime = iota
	sampleThread
	sampleWeight
	sampleNode
	sampleKind
	sampleTrace
)

// ownSample reads a sample that candid wrote.
func ownSample(r *reader, c *chunk, h *eventReader, cur *cursor) error {
	var rec record
	h.slots.read(cur, &rec)
	o := &c.pools.own
	s, ok := o.samples.get(rec.n[sampleKind])
	if !ok {
		var err error
		if s, err = r.ownKind(c, rec.n[sampleKind]); err != nil {
			return err
		}
	}
	if rec.n[sampleNode] != 0 || r.readers.stacks == noType {
		s.Node, ok = o.node(rec.n[sampleNode])
	} else {
		s.Node, ok = o.stacks.get(rec.n[sampleTrace])
	}
	switch {
	case ok:
	case c.bare:
		var err error
		if s.Node, _, err = r.foreignStack(c, rec.n[sampleTrace]); err != nil {
			return err
		}
		r.bare = true
	default:
		return fmt.Errorf("%w: its stack, %d", errNotThere, rec.n[sampleTrace])
	}
	if s.Thread, ok = r.ownThread(c, rec.n[sampleThread]); !ok {
		return fmt.Errorf("%w: its thread, %d", errNotThere, rec.n[sampleThread])
	}
	s.Time, s.Weight = c.ns(rec.n[sampleTime]), rec.n[sampleWeight]
	r.latest = max(r.latest, s.Time)
	if r.take != nil {
		r.take(s)
	} else {
		r.b.Add(s)
	}
	return nil
}

// ownKind decodes a kind of samples.
func (r *reader) ownKind(c *chunk, id uint64) (s profile.Sample, err error) {
	o := &c.pools.own
	k, ok := o.kinds.get(id)
	if !ok {
		return s, fmt.Errorf("%w: its kind, %d", errNotThere, id)
	}
	text := func(t *table[text], id uint64) string {
		v, _ := t.get(id)
		return c.pools.text(v)
	}
	s.State, _ = profile.StateByName(text(&o.states, k.numbers[0]))
	if call := k.numbers[1]; call < uint64(c.calls) {
		s.Syscall = uint16(call)
		if labels := r.ownLabels(c.pools.text(k.labels)); len(labels) > 0 && call > 0 {
			r.own.labels = at(r.own.labels, uint32(call))
			r.own.labels[call] = labels
		}
	}
	s.End, _ = endByName(text(&o.ends, k.numbers[2]))
	if k.numbers[3] != 0 {
		s.Flags |= profile.Stitched
	}
	if k.numbers[4] != 0 {
		s.Flags |= profile.Guessed
	}
	if k.numbers[6] != 0 {
		s.Flags |= profile.Continued
	}
	if k.numbers[7] != 0 {
		s.Flags |= profile.Unnamed
	}
	s.Event = r.ownEvent(c.pools.text(k.event), k.numbers[5])
	o.samples.put(id, s)
	return s, nil
}

// maxEvents bounds how many events a recording has.
const maxEvents = 1024

// ownEvent returns the index of an event by its name and its number in the file.
func (r *reader) ownEvent(name string, number uint64) uint16 {
	events := r.own.events
	if number < uint64(len(events)) && events[number].Name == name {
		return uint16(number)
	}
	for i := range events {
		if events[i].Name == name || i == maxEvents {
			return uint16(i)
		}
	}
	r.own.events = append(events, profile.NamedEvent(name, "count", 1))
	return uint16(len(events))
}

// ownThread returns the profile's thread for a constant.
func (r *reader) ownThread(c *chunk, id uint64) (uint32, bool) {
	t, ok := c.pools.threads.get(id)
	if !ok {
		return 0, false
	}
	if !t.known {
		name := c.pools.text(t.osName)
		t.known, t.index = true, r.threadBy(threadKey{t.number, t.process, t.osID}, name)
		c.pools.threads.put(id, t)
	}
	return t.index, true
}

// threadBy returns the profile's thread, which may be new.
func (r *reader) threadBy(k threadKey, name string) uint32 {
	i, ok := r.own.threads[k]
	if !ok {
		if r.own.threads == nil {
			r.own.threads = map[threadKey]uint32{}
		}
		i = r.b.NewThread(int(k.pid), int(k.tid), name)
		r.own.threads[k] = i
	}
	return i
}
