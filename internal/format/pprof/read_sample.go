package pprof

import (
	"errors"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

var errTooLarge = errors.New("the file holds more than candid reads: 32 million stack nodes or 16 million stacks")

// maxStack bounds the depth of a stack: async-profiler has 2048 frames, candid at most some 3000.
const maxStack = 1 << 16

// maxTypes bounds how many values samples have, and maxComments how many remarks a file has.
const (
	maxTypes    = 1 << 10
	maxComments = 1 << 12
)

// maxSkid is more than the number of functions that call each other to enable interrupts.
const maxSkid = 8

// sample reads one Sample of the file: for each of its values that is not zero, as many samples as
// it counts.
func (r *reader) sample(data []byte) error {
	r.ids, r.values, r.skids = r.ids[:0], r.values[:0], r.skids[:0]
	r.labels.reset()
	var s profile.Sample
	var key threadKey
	var event, kind, call string
	c := cursor{rest: data}
	for c.next() {
		switch c.field {
		case sampleLocation:
			var more bool
			if r.ids, more = c.numbers(r.ids, maxStack); more {
				s.End = walk.EndTruncated
			}
		case sampleValue:
			r.values, _ = c.numbers(r.values, maxTypes)
		case sampleLabel:
			if err := r.label(c.data, &s, &key, &event, &kind, &call); err != nil {
				return err
			}
		}
	}
	if c.err != nil {
		return c.err
	}
	node := uint32(profile.RootNode)
	for i := len(r.ids) - 1; i >= 0; i-- {
		frames := r.locations.get(r.ids[i])
		for j := len(frames) - 1; j >= 0; j-- {
			node = r.b.Node(node, frames[j])
		}
		if r.b.Nodes() > maxNodes {
			return errTooLarge
		}
		if err := r.gate.Pass(); err != nil {
			return err
		}
	}
	if r.ours && len(r.skids) <= maxSkid {
		for _, name := range slices.Backward(r.skids) {
			fn := r.b.Func(profile.Func{Name: name, Module: kernelModule})
			node = r.b.Node(node, r.b.Frame(profile.Frame{Func: fn, BCI: -1, Kind: walk.KindKernel, Flags: walk.Skid}))
		}
	}
	if r.b.Nodes() > maxNodes {
		return errTooLarge
	}
	s.Node = node
	s.Thread = r.thread(key)
	var whole bool
	s.Syscall, whole = r.circumstance(call)
	if t := &r.p.Threads[s.Thread]; t.Kind == "" && slices.Contains(profile.ThreadKinds(), kind) {
		t.Kind = kind
	}

	count := uint64(1)
	if r.countColumn >= 0 && r.countColumn < len(r.values) {
		count = r.values[r.countColumn]
	}
	if !whole {
		r.unlabeled += min(max(count, 1), maxSamples)
	}
	added := false
	for col, v := range r.values {
		e, ok := r.eventOf[col]
		if !ok || v == 0 || int64(v) < 0 { // negative: the file is a difference of two
			continue
		}
		s.Event = uint16(e)
		if err := r.add(s, count, v); err != nil {
			return err
		}
		added = true
	}
	if added || r.countColumn < 0 || count == 0 || len(r.p.Events) == 0 {
		return nil
	}
	// Samples without weight count too.
	s.Event = 0
	for e := range r.p.Events {
		if r.p.Events[e].Name == event {
			s.Event = uint16(e)
			break
		}
	}
	return r.add(s, count, 0)
}

// unfold returns how many more samples counts may be unfolded into.
func (r *reader) unfold() int {
	return max(min(maxUnfolded-r.b.Samples(), r.b.Room()), 0)
}

// add adds count samples with weight in total.
func (r *reader) add(s profile.Sample, count, weight uint64) error {
	if r.b.Samples() >= maxSamples {
		return errTooLarge
	}
	if count == 0 || int64(count) < 0 {
		count = 1
	}
	// At most a quarter of the remaining room: what follows must have some too.
	if count > 1 && count > uint64(r.unfold())/4 {
		r.merged = true
		count = 1
	}
	each, rest := weight/count, weight%count
	for i := range count {
		s.Weight = each
		if i < rest {
			s.Weight++
		}
		r.b.Add(s)
	}
	return r.b.Err()
}

func (r *reader) thread(k threadKey) uint32 {
	i, ok := r.threads[k]
	if !ok {
		i = uint32(len(r.p.Threads))
		r.p.Threads = append(r.p.Threads, profile.Thread{PID: k.pid, TID: k.tid, Name: k.name, OSName: k.name})
		r.threads[k] = i
	}
	return i
}
