package view

import (
	"math"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// columns hold what summing needs of each sample, in the order of time: while a range of time is
// dragged, most of the time goes into fetching samples.
type columns struct {
	sort   []uint32 // index into sorts
	thread []uint32
	last   []uint32 // index into ends
	weight []uint32 // nil if a weight exceeds 32 bits

	sorts []trait
	ends  []uint32 // nodes in which samples end, ascending
}

// trait is what distinguishes a sample besides its time, thread, weight and stack. Millions of
// samples have a few dozen traits.
type trait struct {
	event, syscall uint16
	state          profile.State
	end            walk.End
	flags          profile.SampleFlags
	spans          bool // profile.Event.Spans of the event
}

func newColumns(events []profile.Event, samples []profile.Sample, at []uint32, nodes int) columns {
	n := len(samples)
	c := columns{sort: make([]uint32, n), thread: make([]uint32, n), last: make([]uint32, n), weight: make([]uint32, n)}
	known := make(map[trait]uint32)
	var before trait
	var same uint32
	number := make([]uint32, nodes) // index in ends of a node
	for _, node := range at {
		number[node] = 1
	}
	for node, in := range number {
		if in > 0 {
			number[node] = uint32(len(c.ends))
			c.ends = append(c.ends, uint32(node))
		}
	}
	for i := range samples {
		s := &samples[i]
		k := trait{event: s.Event, syscall: s.Syscall, state: s.State, end: s.End, flags: s.Flags}
		if k != before || len(c.sorts) == 0 {
			id, ok := known[k]
			if !ok {
				id = uint32(len(c.sorts))
				c.sorts = append(c.sorts, k)
				known[k] = id
			}
			before, same = k, id
		}
		c.sort[i], c.thread[i], c.last[i] = same, s.Thread, number[at[i]]
		if s.Weight > math.MaxUint32 {
			c.weight = nil
		} else if c.weight != nil {
			c.weight[i] = uint32(s.Weight)
		}
	}
	for i := range c.sorts {
		k := &c.sorts[i]
		k.spans = int(k.event) < len(events) && events[k.event].Spans(k.state)
	}
	return c
}

// weightOf returns a sample's weight.
func (r *Recording) weightOf(i int) uint64 {
	if r.cols.weight != nil {
		return uint64(r.cols.weight[i])
	}
	return r.p.Samples[i].Weight
}
