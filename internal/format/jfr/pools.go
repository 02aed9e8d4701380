package jfr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
)

// table holds constants by number. Numbers mostly run from 1 on: a list holds those that do, and is
// never much longer than the number of constants. It is in pages, so that it grows without copying.
type table[T any] struct {
	pages []*tablePage[T]
	rest  map[uint64]T
	n     uint64 // constants that were put
}

const (
	tableBits = 6 // log2 of how many constants a page holds
	tableMask = 1<<tableBits - 1
)

type tablePage[T any] struct {
	list [1 << tableBits]T
	have [1 << tableBits]bool
}

func (t *table[T]) put(id uint64, v T) {
	// A file may have a great many chunks with few constants, so the pages are made as they are
	// needed.
	if t.n++; id < 4*t.n+1<<12 {
		at := id >> tableBits
		for uint64(len(t.pages)) <= at {
			t.pages = append(t.pages, nil)
		}
		if t.pages[at] == nil {
			t.pages[at] = new(tablePage[T])
		}
		t.pages[at].list[id&tableMask], t.pages[at].have[id&tableMask] = v, true
		return
	}
	if t.rest == nil {
		t.rest = map[uint64]T{}
	}
	t.rest[id] = v
}

func (t *table[T]) get(id uint64) (T, bool) {
	if at := id >> tableBits; at < uint64(len(t.pages)) {
		if p := t.pages[at]; p != nil && p.have[id&tableMask] {
			return p.list[id&tableMask], true
		}
	}
	v, ok := t.rest[id]
	return v, ok
}

func (t *table[T]) each(visit func(id uint64, v T)) {
	for at, p := range t.pages {
		for i := 0; p != nil && i < len(p.list); i++ {
			if p.have[i] {
				visit(uint64(at)<<tableBits|uint64(i), p.list[i])
			}
		}
	}
	// Sorted by number, so that a file yields the same profile each time.
	for _, id := range slices.Sorted(maps.Keys(t.rest)) {
		visit(id, t.rest[id])
	}
}

// pools are the constants of a chunk that candid needs.
type pools struct {
	strings    table[text]
	symbols    table[text]
	classes    table[uint64] // number of the name
	methods    table[method]
	threads    table[thread]
	frameTypes table[text]
	states     table[text] // of threads
	traces     table[place]
	nodes      map[uint64]uint32  // of the profile, by the numbers of traces
	funcs      table[uint32]      // of the profile, by the numbers of methods
	labels     map[uint64]ofClass // by the numbers of classes

	checkpoints [][]byte           // those that contain traces
	names       map[[2]uint64]text // by type and number: names used by observations
	own         ownPools
}

type method struct{ class, name, descriptor uint64 }

type thread struct {
	osName, javaName text
	osID, javaID     uint64
	process, number  uint64
	known            bool // index is the profile's thread
	index            uint32
}

// place is the position of a trace in the checkpoints.
type place struct{ checkpoint, pos uint32 }

// text returns the text of a string.
func (p *pools) text(t text) string {
	// A string may refer to a constant, which never refers to another one.
	if t.ref != 0 {
		c, _ := p.strings.get(t.ref)
		return c.s
	}
	return t.s
}

func (p *pools) symbol(id uint64) string {
	t, _ := p.symbols.get(id)
	return p.text(t)
}

// poolReader reads the constants of a type.
type poolReader struct {
	slots slots
	put   func(p *pools, id uint64, r *record)
	name  bool // it is kept in names
}

// wanted are the types of constants that are read, with their fields.
var wanted = map[string]struct {
	numbers, texts []string
	put            func(p *pools, id uint64, r *record)
}{
	nameSymbol: {nil, []string{"string"}, func(p *pools, id uint64, r *record) { p.symbols.put(id, r.t[0]) }},
	nameClass:  {[]string{"name"}, nil, func(p *pools, id uint64, r *record) { p.classes.put(id, r.n[0]) }},
	nameMethod: {[]string{"type", "name", "descriptor"}, nil, func(p *pools, id uint64, r *record) {
		p.methods.put(id, method{r.n[0], r.n[1], r.n[2]})
	}},
	nameThread: {[]string{"osThreadId", "javaThreadId", "process", "number"}, []string{"osName", "javaName"}, func(p *pools, id uint64, r *record) {
		p.threads.put(id, thread{osName: r.t[0], javaName: r.t[1], osID: r.n[0], javaID: r.n[1], process: r.n[2], number: r.n[3]})
	}},
	nameFrameType:   {nil, []string{"description"}, func(p *pools, id uint64, r *record) { p.frameTypes.put(id, r.t[0]) }},
	nameThreadState: {nil, []string{"name"}, func(p *pools, id uint64, r *record) { p.states.put(id, r.t[0]) }},

	nameFrameKind:  {nil, []string{"name"}, func(p *pools, id uint64, r *record) { p.own.frameKinds.put(id, r.t[0]) }},
	nameProvenance: {nil, []string{"name"}, func(p *pools, id uint64, r *record) { p.own.provenances.put(id, r.t[0]) }},
	nameState:      {nil, []string{"name"}, func(p *pools, id uint64, r *record) { p.own.states.put(id, r.t[0]) }},
	nameEnd:        {nil, []string{"name"}, func(p *pools, id uint64, r *record) { p.own.ends.put(id, r.t[0]) }},
	nameSyscall:    {nil, []string{"name"}, func(p *pools, id uint64, r *record) { p.own.syscalls.put(id, r.t[0]) }},
	nameFunction: {[]string{"name", "raw", "signature", "module", "file", "noName", "startLine"}, nil, func(p *pools, id uint64, r *record) {
		p.own.functions.put(id, [7]uint64(r.n[:7]))
	}},
	nameFrame: {[]string{"function", "line", "bci", "kind", "provenance", "flags", "address"}, nil, func(p *pools, id uint64, r *record) {
		p.own.frames.put(id, [7]uint64(r.n[:7]))
	}},
	nameKind: {[]string{"state", "systemCall", "end", "stitched", "guessed", "number", "continued", "unnamed"}, []string{"event", "labels"}, func(p *pools, id uint64, r *record) {
		p.own.kinds.put(id, ownKind{numbers: [8]uint64(r.n[:8]), event: r.t[0], labels: r.t[1]})
	}},
}

// readers read the constants and events of a schema.
type readers struct {
	ours                bool // candid wrote the file
	pools               map[uint64]*poolReader
	strings, traces     uint64 // types
	nodes, stacks       uint64
	trace               tracePlan
	few                 [128]*eventReader // by type
	events              map[uint64]*eventReader
	executionSampleType uint64
}

func (rs *readers) event(typ uint64) *eventReader {
	if typ < uint64(len(rs.few)) {
		return rs.few[typ]
	}
	return rs.events[typ]
}

const noType = ^uint64(0)

func (s *schema) readers() (readers, error) {
	rs := readers{pools: map[uint64]*poolReader{}, events: map[uint64]*eventReader{}, strings: noType, traces: noType, nodes: noType, stacks: noType}
	for name, w := range wanted {
		t := s.byName[name]
		if t == nil {
			continue
		}
		sl, err := s.slotsOf(t, w.numbers, w.texts)
		if err != nil {
			return rs, err
		}
		rs.pools[t.id] = &poolReader{sl, w.put, false}
	}
	if t := s.byName[nameString]; t != nil {
		rs.strings = t.id
	}
	if t := s.byName[nameStackTrace]; t != nil {
		rs.traces = t.id
		var err error
		if rs.trace, err = s.tracePlan(t); err != nil {
			return rs, err
		}
	}
	if t := s.byName[nameNodes]; t != nil && len(t.fields) == 1 && s.byName[nameKind] != nil {
		rs.ours, rs.nodes = true, t.id
		if t := s.byName[nameStacks]; t != nil && len(t.fields) == 1 {
			rs.stacks = t.id
		}
	}
	return rs, s.eventReaders(&rs)
}

// maxCheckpoint is the maximum size of a checkpoint in bytes; it is held in memory.
const maxCheckpoint = 1 << 30

// constants reads the constants of a chunk: the last checkpoint says where the one before is, and
// so on to the first, or to those that were read before.
func (r *reader) constants(c *chunk) error {
	if c.pools.nodes == nil {
		c.pools.nodes = map[uint64]uint32{}
	}
	var places []int64
	for at, end := c.checkpoint, c.size; at > c.known; {
		head, size, err := r.event(c, at, 9*maxLong)
		if err != nil {
			return err
		}
		if size > maxCheckpoint {
			return fmt.Errorf("%w: %d bytes of constants at once", ErrMalformed, size)
		}
		if size > end-at {
			return fmt.Errorf("%w: checkpoints overlap", ErrMalformed)
		}
		cur := &cursor{b: head}
		before := checkpointHead(cur)
		pools, typ := cur.long(), cur.long()
		if cur.err != nil {
			return cur.err
		}
		// Checkpoints that only other readers need are skipped in candid's own files.
		if !r.readers.ours || c.bare || pools != 1 || typ != r.readers.traces {
			places = append(places, at)
		}
		if before >= 0 {
			break
		}
		end = at
		at += before
	}
	room := func(n int64) []byte { return make([]byte, n) }
	if r.readers.ours && !c.bare {
		room = r.scratch.take // everything that is kept is copied
	}
	for i := len(places) - 1; i >= 0; i-- {
		b, _, err := r.eventIn(room, c, places[i], maxCheckpoint)
		if err == nil {
			err = r.checkpoint(c, b)
		}
		if err != nil {
			return fmt.Errorf("the checkpoint at byte %d: %w", places[i], err)
		}
	}
	c.known = c.checkpoint
	return nil
}

// checkpointHead reads a checkpoint up to its pools and returns the distance to the one before:
// less than 0, or 0 if there is none.
func checkpointHead(cur *cursor) int64 {
	if typ := cur.long(); cur.err == nil && typ != typeCheckpoint {
		cur.fail(fmt.Errorf("%w: an event of type %d is no checkpoint", ErrMalformed, typ))
	}
	cur.long() // start
	cur.long() // duration
	before := int64(cur.long())
	cur.byte() // what it is for
	return before
}

func (r *reader) checkpoint(c *chunk, b []byte) error {
	cur := &cursor{b: b}
	checkpointHead(cur)
	p, rs := &c.pools, &r.readers
	var rec record
	kept := false
	gate := r.b.Meter().Gate()
	for range cur.count() {
		typ := cur.long()
		n := cur.count()
		if cur.err != nil {
			return cur.err
		}
		switch {
		case typ == rs.strings:
			for range n {
				id := cur.long()
				t := cur.text()
				if err := cmp.Or(cur.err, gate.Pass()); err != nil {
					return err
				}
				p.strings.put(id, t)
			}
			continue
		case (typ == rs.nodes || typ == rs.stacks) && rs.ours:
			to := &p.own.runs
			if typ == rs.stacks {
				to = &p.own.stackRuns
			}
			for range n {
				id := cur.long()
				data := cur.data()
				if err := cmp.Or(cur.err, gate.Pass()); err != nil {
					return err
				}
				*to = append(*to, run{id, data})
			}
			continue
		case typ == rs.traces && (!rs.ours || c.bare):
			for range n {
				id := cur.long()
				p.traces.put(id, place{uint32(len(p.checkpoints)), uint32(cur.pos)})
				rs.trace.plan.skip(cur)
				if err := cmp.Or(cur.err, gate.Pass()); err != nil {
					return err
				}
			}
			kept = true
			continue
		}
		reader := rs.pools[typ]
		if reader == nil {
			if err := r.skipPool(cur, typ, n); err != nil {
				return err
			}
			continue
		}
		for range n {
			rec = record{}
			id := cur.long()
			reader.slots.read(cur, &rec)
			if err := cmp.Or(cur.err, gate.Pass()); err != nil {
				return err
			}
			reader.put(p, id, &rec)
		}
	}
	if kept {
		p.checkpoints = append(p.checkpoints, b)
	}
	return cur.err
}

// skipPool skips the constants of a type that is not needed.
func (r *reader) skipPool(cur *cursor, typ uint64, n int) error {
	t := r.schema.byID[typ]
	if t == nil {
		return fmt.Errorf("%w: constants of type %d, which is not described", ErrMalformed, typ)
	}
	plan, err := r.schema.planOf(t)
	if err != nil {
		return err
	}
	for range n {
		cur.long()
		plan.skip(cur)
		if cur.err != nil {
			return cur.err
		}
	}
	return nil
}

// root is the node of a stack of which nothing is known.
const root = uint32(profile.RootNode)
