package store

import (
	"cmp"
	"encoding/binary"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// quantum is how exactly the time of a sample is kept that stands for an instant.
const quantum = time.Second

// entry are samples of one thread in one stack that differ only in their time. A wait is always an
// entry of its own.
type entry struct {
	thread uint32
	kind   uint32 // index into the block's kinds
	node   uint32
	n      uint64
	weight uint64 // of all of them
	// time is when a wait ended, in ns since the block's beginning; for instants it is in quanta.
	time uint64
}

// kind is what samples have in common besides thread and stack.
type kind struct {
	event, syscall uint32 // indices into the block's events and system calls
	state          profile.State
	end            walk.End
	flags          profile.SampleFlags
}

func (k *kind) spans(events []profile.Event) bool { return events[k.event].Spans(k.state) }

// about is what a block of samples says of all of them. Its texts are strings of the tables.
type about struct {
	host, engine, describe, command, candid uint32
	notes                                   []uint32
	losses                                  profile.Losses
	cost                                    profile.Cost
	events                                  []event
	syscalls                                []uint32
	kinds                                   []kind
	needs                                   counts // how many entries the tables need at least
}

type event struct {
	name, unit uint32
	kind       profile.EventKind
	period     uint64
}

func (a *about) append(b []byte) []byte {
	put := func(list ...uint64) {
		for _, v := range list {
			b = binary.AppendUvarint(b, v)
		}
	}
	n := a.needs
	put(uint64(n.strings), uint64(n.fns), uint64(n.frames), uint64(n.nodes), uint64(n.processes), uint64(n.threads))
	put(uint64(a.host), uint64(a.engine), uint64(a.describe), uint64(a.command), uint64(a.candid))
	c := a.cost
	put(a.losses.Lost, a.losses.Throttled)
	put(uint64(max(c.Copying, 0)), uint64(max(c.TargetCPU, 0)), uint64(max(c.OwnCPU, 0)), c.Memory)
	for _, list := range [][]uint32{a.notes, a.syscalls} {
		put(uint64(len(list)))
		for _, v := range list {
			put(uint64(v))
		}
	}
	put(uint64(len(a.events)))
	for _, e := range a.events {
		put(uint64(e.name), uint64(e.unit), uint64(e.kind), e.period)
	}
	put(uint64(len(a.kinds)))
	for _, k := range a.kinds {
		put(uint64(k.event), uint64(k.syscall), uint64(k.state), uint64(k.end), uint64(k.flags))
	}
	return b
}

func (a *about) parse(c *cursor) error {
	a.needs = counts{strings: c.index(), fns: c.index(), frames: c.index(), nodes: c.index(), processes: c.index(), threads: c.index()}
	a.host, a.engine, a.describe, a.command, a.candid = c.index(), c.index(), c.index(), c.index(), c.index()
	a.losses = profile.Losses{Lost: c.number(), Throttled: c.number()}
	a.cost = profile.Cost{Copying: c.duration(), TargetCPU: c.duration(), OwnCPU: c.duration(), Memory: c.number()}
	for _, list := range []*[]uint32{&a.notes, &a.syscalls} {
		for range c.count() {
			*list = append(*list, c.index())
		}
	}
	for range c.count() {
		a.events = append(a.events, event{name: c.index(), unit: c.index(), kind: profile.EventKind(c.below(uint64(profile.NumEventKinds))), period: c.number()})
	}
	for range c.count() {
		a.kinds = append(a.kinds, kind{
			event: uint32(c.below(uint64(len(a.events)))), syscall: uint32(c.below(uint64(max(len(a.syscalls), 1)))),
			state: profile.State(c.below(uint64(profile.NumStates))), end: walk.End(c.below(uint64(walk.NumEnds))), flags: profile.SampleFlags(c.below(256)),
		})
	}
	if c.bad || len(a.events) > 1<<16 || len(a.syscalls) > 1<<16 {
		return errCut
	}
	return nil
}

// duration reads a duration.
func (c *cursor) duration() time.Duration { return time.Duration(c.below(1 << 63)) }

// compare sorts what may become one entry next to each other.
func (e *entry) compare(o *entry) int {
	return cmp.Or(cmp.Compare(e.thread, o.thread), cmp.Compare(e.kind, o.kind), cmp.Compare(e.node, o.node), cmp.Compare(e.time, o.time))
}

// encodeEntries appends single samples, which are sorted. Entries of a thread follow each other, and
// every field is a column.
func (a *about) encodeEntries(b []byte, events []profile.Event, list []entry) []byte {
	var threads, lengths, kinds, nodes, numbers, weights, times []byte
	groups, inGroup, entries := 0, 0, 0
	var last entry
	for i := 0; i < len(list); {
		e := list[i]
		spans := a.kinds[e.kind].spans(events)
		j := i + 1
		if !spans {
			for j < len(list) && list[j].thread == e.thread && list[j].kind == e.kind && list[j].node == e.node {
				e.n += list[j].n
				e.weight += list[j].weight
				j++
			}
		}
		if groups == 0 || e.thread != last.thread {
			if groups > 0 {
				lengths = binary.AppendUvarint(lengths, uint64(inGroup))
			}
			threads = binary.AppendUvarint(threads, uint64(e.thread-last.thread))
			groups, inGroup, last = groups+1, 0, entry{thread: e.thread}
		}
		inGroup++
		entries++
		kinds = binary.AppendUvarint(kinds, uint64(e.kind-last.kind))
		nodes = binary.AppendUvarint(nodes, zigzag(int64(e.node)-int64(last.node)))
		numbers = binary.AppendUvarint(numbers, e.n)
		weights = binary.AppendUvarint(weights, zigzag(int64(e.weight-e.n*events[a.kinds[e.kind].event].Period)))
		if spans {
			times = binary.AppendUvarint(times, e.time)
		} else {
			// Samples of which the profile had only the sum are all at the time of the sum.
			before := uint64(0)
			for _, s := range list[i:j] {
				for range s.n {
					times = binary.AppendUvarint(times, s.time-before)
					before = s.time
				}
			}
		}
		last = e
		i = j
	}
	if groups > 0 {
		lengths = binary.AppendUvarint(lengths, uint64(inGroup))
	}
	b = binary.AppendUvarint(b, uint64(groups))
	b = binary.AppendUvarint(b, uint64(entries))
	for _, col := range [][]byte{threads, lengths, kinds, nodes, numbers, weights, times} {
		b = appendColumn(b, col)
	}
	return b
}

// block is a block of samples that is being read.
type block struct {
	header
	about
	offset   int64    // of the header in its file
	unpacked unpacked // the columns are in it
	spanning []bool   // by kind
	spans    bool     // some are
	untimed  bool     // the times of instants are not asked for
	parts    []part
}

// part are the samples of some services in a block.
type part struct {
	groups int
	threads, lengths, kindCol, nodes,
	numbers, weights, times cursor
}

// parseBlock reads what a block of samples says of all of them, and finds the columns of its parts.
func parseBlock(h header, u unpacked) (*block, error) {
	k := &block{header: h, unpacked: u, parts: make([]part, len(u.parts))}
	c := cursor{b: u.about}
	if err := k.about.parse(&c); err != nil {
		return nil, err
	}
	for i := range k.parts {
		k.parts[i].parse(u.parts[i], &c)
	}
	if c.bad || h.to < h.from {
		return nil, errCut
	}
	k.spanning = make([]bool, len(k.kinds))
	for i := range k.kinds {
		e := &k.events[k.kinds[i].event]
		// The unit's text is in the tables: Writers say by the kind of a time whether it is one.
		k.spanning[i] = k.kinds[i].state >= profile.StateRunnable && e.unit == unitNanoseconds
		k.spans = k.spans || k.spanning[i]
	}
	return k, nil
}

// parse finds the columns of a part in raw. In blocks of version 1, raw is nil: they follow what is
// said of all samples, where c is.
func (k *part) parse(raw []byte, c *cursor) {
	if raw != nil {
		c = &cursor{b: raw, bad: c.bad}
	}
	k.groups = c.count()
	c.number()
	for _, col := range []*cursor{&k.threads, &k.lengths, &k.kindCol, &k.nodes, &k.numbers, &k.weights, &k.times} {
		*col = c.column()
	}
}

// unitNanoseconds is the index of the string "nanoseconds" in the tables of every segment.
const unitNanoseconds = 1

// skip skips the entries of a thread, if none is a wait.
func (k *part) skip() {
	entries, samples := k.lengths.number(), uint64(0)
	k.kindCol.skip(entries)
	k.nodes.skip(entries)
	k.weights.skip(entries)
	for i := uint64(0); i < entries && !k.numbers.bad; i++ {
		samples += k.numbers.number()
	}
	k.times.skip(samples)
}

// each visits the entries of the threads that wanted reports. times are those of the entry, in
// quanta for instants, none if the block is untimed; they are valid during the call.
func (k *block) each(wanted func(thread uint32) bool, visit func(e *entry, times []uint32)) error {
	for i := range k.parts {
		if err := k.eachOf(&k.parts[i], wanted, visit); err != nil {
			return err
		}
	}
	return nil
}

func (k *block) eachOf(p *part, wanted func(thread uint32) bool, visit func(e *entry, times []uint32)) error {
	var e entry
	var times []uint32
	for range p.groups {
		id := uint64(e.thread) + p.threads.number()
		if id >= uint64(k.needs.threads) {
			return errCut
		}
		e = entry{thread: uint32(id)}
		want := wanted(e.thread)
		if !want && !k.spans {
			p.skip()
			continue
		}
		for range p.lengths.number() {
			kd := uint64(e.kind) + p.kindCol.number()
			if kd >= uint64(len(k.kinds)) || p.nodes.bad {
				return errCut
			}
			e.kind = uint32(kd)
			e.node += uint32(p.nodes.signed())
			e.n = p.numbers.number()
			e.weight = e.n*k.events[k.kinds[kd].event].period + uint64(p.weights.signed())
			times = times[:0]
			switch {
			case k.spanning[kd]:
				e.time = p.times.number()
			case e.n > uint64(len(p.times.b)):
				return errCut
			case k.untimed || !want:
				p.times.skip(e.n)
			default:
				at := uint32(0)
				for range e.n {
					at += uint32(p.times.number())
					times = append(times, at)
				}
			}
			if e.node >= max(k.needs.nodes, 1) {
				return errCut
			}
			if want && e.n > 0 {
				visit(&e, times)
			}
		}
		if p.lengths.bad {
			return errCut
		}
	}
	if p.threads.bad || p.kindCol.bad || p.nodes.bad || p.numbers.bad || p.weights.bad || p.times.bad {
		return errCut
	}
	return nil
}
