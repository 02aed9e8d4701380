package pprof

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/candid-profiler/candid/internal/format/locations"
	"github.com/candid-profiler/candid/internal/profile"
)

// columnsOf returns the events in the order of their columns, if all of them were values of the same
// samples in the file that they come from; otherwise nil.
func columnsOf(events []profile.Event) []int {
	var order []int
	for i, e := range events {
		if e.Column == 0 {
			return nil
		}
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(events[a].Column, events[b].Column) })
	return order
}

// severalValues writes the samples of a profile whose events are values of the same samples: those
// that differ only in the event are one Sample.
func (w *writer) severalValues() {
	type row struct {
		locations.Group
		weight uint64
	}
	sums := make([]uint64, len(w.p.Events))
	var same []row // of one stack and thread
	flush := func() {
		slices.SortStableFunc(same, func(a, b row) int { return apart(a.Group).Compare(apart(b.Group)) })
		for i := 0; i < len(same) && w.err == nil; {
			g := apart(same[i].Group)
			clear(sums)
			for ; i < len(same) && apart(same[i].Group) == g; i++ {
				sums[same[i].Event] += same[i].weight
			}
			w.values = w.values[:0]
			for _, e := range w.columns {
				w.values = protowire.AppendVarint(w.values, sums[e])
			}
			w.sample(g)
		}
		same = same[:0]
	}
	for g, c := range locations.Sums(w.p) {
		if len(same) > 0 && (same[0].Node != g.Node || same[0].Thread != g.Thread) {
			flush()
		}
		if same = append(same, row{g, c.Weight}); w.err != nil {
			return
		}
	}
	flush()
}

// apart returns a group without its event.
func apart(g locations.Group) locations.Group {
	g.Event = 0
	return g
}
