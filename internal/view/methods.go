package view

import (
	"context"
	"net/url"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/walk"
)

// methodSum is the sum of a method over what a filter leaves.
type methodSum struct {
	self, total    uint64 // a stack counts once in total, however often the method is on it
	count, samples uint64 // the same in samples
	coarse         uint64 // in samples, of count: as in profile.MethodCount
	guessed        int64  // of samples, times 255
	place          uint32 // the method's place with most weight
	kind           uint8  // the most frequent kind of its innermost frames
}

// kinds is the number of kinds of walk, and one for missing frames.
const kinds = int(walk.NumKinds) + 1

// byMethod holds the sums of one worker.
type byMethod struct {
	sums   []methodSum
	most   []uint64 // what is in the place
	byKind []int64  // by method and kind: samples
	open   []uint32 // by method: its innermost place on the current path, 0: none
}

// methodSums adds up by method, as profile.Selection.List does. The error is the context's.
func (r *Recording) methodSums(ctx context.Context, t *placeSums) ([]methodSum, error) {
	s, w := t.of, r.ways(t.of)
	n := len(w.depth)
	kindOf := make([]uint8, len(s.tree.Symbols))
	for i, symbol := range s.tree.Symbols {
		kindOf[i] = uint8(min(symbol.Kind, walk.NumKinds-1))
		if symbol.Func == flame.NoFunc {
			kindOf[i] = uint8(walk.NumKinds)
		}
	}
	parts := make([]*byMethod, workersFor(n))
	stretches(n, func(worker, from, to int) {
		p := &byMethod{make([]methodSum, w.methods), make([]uint64, w.methods), make([]int64, w.methods*kinds), make([]uint32, w.methods)}
		parts[worker] = p
		p.walk(ctx, t, w, kindOf, from, to)
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all := parts[0]
	for _, p := range parts[1:] {
		for m := range p.sums {
			a, b := &all.sums[m], &p.sums[m]
			a.self += b.self
			a.total += b.total
			a.count += b.count
			a.samples += b.samples
			a.coarse += b.coarse
			a.guessed += b.guessed
			if p.most[m] > all.most[m] || a.place == 0 {
				all.most[m], a.place = p.most[m], b.place
			}
		}
		for k, n := range p.byKind {
			all.byKind[k] += n
		}
	}
	for m := range all.sums {
		list := all.byKind[m*kinds : (m+1)*kinds]
		for k, n := range list {
			if n > list[all.sums[m].kind] {
				all.sums[m].kind = uint8(k)
			}
		}
	}
	return all.sums, nil
}

// walk adds up the places from from up to to.
func (p *byMethod) walk(ctx context.Context, t *placeSums, w *treeIndex, kindOf []uint8, from, to int) {
	// The places on the current path, and for each what was open outside of it.
	type entered struct {
		place, outer uint32
		method       int32
	}
	var way []entered
	enter := func(i uint32, m int32) (outer uint32) {
		outer = p.open[m]
		way = append(way, entered{i, outer, m})
		p.open[m] = i
		return outer
	}
	sym, tree := t.of.sym, t.of.tree
	guessed := func(i int) int64 {
		at := tree.Order[i]
		return int64(flame.Share(tree.Tally(flame.Heuristic, at), uint64(tree.Samples[at])))
	}
	if from > 0 {
		var above []uint32
		for at := w.parent[from]; at > 0; at = w.parent[at] {
			above = append(above, at)
		}
		for k := len(above) - 1; k >= 0; k-- {
			if m := w.method[sym[above[k]]]; m >= 0 {
				enter(above[k], m)
			}
		}
	}
	next := from
	first := max(from, 1)
	at := t.rank(uint32(first)) // of i
	// Places on a path that does not branch end together: the end is looked up once for all of
	// them.
	end, below := uint32(first), at
	for i := first; i < to; {
		if i >= next {
			if ctx.Err() != nil {
				return
			}
			next = i + step
		}
		for len(way) > 0 && int(w.end[way[len(way)-1].place]) <= i {
			last := way[len(way)-1]
			p.open[last.method] = last.outer
			way = way[:len(way)-1]
		}
		if w.end[i] != end {
			end = w.end[i]
			below = t.rank(end)
		}
		samples := t.counts[below] - t.counts[at]
		if samples == 0 {
			i, at = int(end), below
			continue
		}
		after := at
		if t.ends.has(uint32(i)) {
			after++
		}
		total := t.weights[below] - t.weights[at]
		symbol := sym[i]
		if m := w.method[symbol]; m >= 0 {
			outer := enter(uint32(i), m)
			sum := &p.sums[m]
			if after > at {
				sum.self += t.weights[at+1] - t.weights[at]
				sum.count += uint64(t.counts[at+1] - t.counts[at])
				if t.rough != nil {
					sum.coarse += uint64(t.rough[at])
				}
			}
			if outer == 0 {
				sum.total += total
				sum.samples += uint64(samples)
			} else {
				p.byKind[int(m)*kinds+int(kindOf[sym[outer]])] -= int64(samples)
				sum.guessed -= int64(samples) * guessed(int(outer))
			}
			p.byKind[int(m)*kinds+int(kindOf[symbol])] += int64(samples)
			sum.guessed += int64(samples) * guessed(i)
			if sum.place == 0 || total > p.most[m] {
				sum.place, p.most[m] = uint32(i), total
			}
		}
		i, at = i+1, after
	}
}

// The remark for a row that is less certain than it looks, by the rule of reports.
const (
	remarkGuessed = 1 + iota
	remarkCoarse
)

func (s *methodSum) remark() uint8 {
	switch {
	case s.guessed*2 > int64(s.samples)*255:
		return remarkGuessed
	case s.coarse*2 > s.count && s.count > 0:
		return remarkCoarse
	}
	return 0
}

// methodsMessage answers with the sums of each method that has any, with filters as for counts.
func methodsMessage(ctx context.Context, r *Recording, v url.Values) ([]byte, error) {
	q, s, err := r.asked(v)
	if err != nil {
		return nil, err
	}
	var sums []methodSum
	err = r.totalled(ctx, &q, s, func(t *placeSums) (err error) {
		sums, err = r.methodSums(ctx, t)
		return err
	})
	if err != nil {
		return nil, err
	}
	var some []uint32
	for m := range sums {
		if sums[m].samples > 0 {
			some = append(some, uint32(m))
		}
	}
	n := len(some)
	m := &message{}
	m.u32("method", n, func(i int) uint32 { return some[i] })
	m.f64("self", n, func(i int) float64 { return float64(sums[some[i]].self) })
	m.f64("total", n, func(i int) float64 { return float64(sums[some[i]].total) })
	m.u32("count", n, func(i int) uint32 { return uint32(sums[some[i]].count) })
	m.u32("samples", n, func(i int) uint32 { return uint32(sums[some[i]].samples) })
	m.u32("node", n, func(i int) uint32 { return sums[some[i]].place })
	m.u8("kind", n, func(i int) uint8 { return sums[some[i]].kind })
	m.u8("remark", n, func(i int) uint8 { return sums[some[i]].remark() })
	return m.finish(map[string]int{"methods": len(sums)})
}
