package view

import (
	"slices"
)

// groupCalls makes the rows of a call tree that begins with groups.
func (t *table) groupCalls(open *opened) {
	x := t.split
	none := x.rootless(t)
	var list []family
	for i, n := range x.sums {
		if n.Samples == 0 {
			continue
		}
		f := x.family(t.shape, int32(i), 0, n)
		f.self = none[int32(i)].Weight
		f.leaf = none[int32(i)].Samples == n.Samples
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b family) int { return a.heavier(&b.tableRow) })
	t.show(list, open, 0, 0)
}

// inGroup returns the rows below a group in the call tree.
func (t *table) inGroup(f *family) []family {
	after, err := t.split.totals(t.ctx, t.shape, int32(f.symbol-t.split.first))
	if err != nil {
		t.err = err
		return nil
	}
	t.part = &grove{end: after.end, parent: t.ways.parent, after: after}
	return t.families(t.part.below([]rowPart{{}}), f.depth+1)
}

// reveal opens the rows on the way to a place, below the group with the symbol in, or else below
// the one that has most there.
func (t *table) reveal(place, in uint32, open *opened) {
	x, w := t.split, t.ways
	list, err := x.by(t.ctx, x.endsIn(t.shape, func(at uint32) int32 {
		if at >= place && at < w.end[place] {
			return 0
		}
		return -1
	}), 1)
	if err != nil {
		t.err = err
		return
	}
	best := int32(-1)
	for g, n := range list[0] {
		if g == int32(in-x.first) && in >= x.first {
			best = g
			break
		}
		if best < 0 || n.Weight > list[0][best].Weight || n.Weight == list[0][best].Weight && x.sums[g].Weight > x.sums[best].Weight || n.Weight == list[0][best].Weight && x.sums[g].Weight == x.sums[best].Weight && g < best {
			best = g
		}
	}
	if best >= 0 {
		o := open.at(x.key(t.shape, best))
		o.open = true
		o.show(w, t.shape, place)
	}
}

// outermost prepares the rows of groups below a row of callers: the part of it that has no caller.
func (t *table) outermost(f *family) {
	p := pending{row: len(t.rows) - 1, depth: f.depth + 1}
	for _, part := range f.parts {
		if t.ways.parent[part.node] == 0 {
			t.outer[part.start] = int32(len(t.split.pending) + 1)
		}
	}
	t.split.pending = append(t.split.pending, p)
}

// insert puts the rows of groups among those of callers.
func (t *table) insert(of int32) {
	x := t.split
	if t.err != nil {
		return
	}
	// If a method's callers are shown, a stack begins at its innermost frame of the method.
	start := func(place uint32) uint32 { return place }
	if of >= 0 {
		near := make([]uint32, len(t.ways.parent))
		for i := 1; i < len(near); i++ {
			if near[i] = near[t.ways.parent[i]]; t.ways.method[t.shape.sym[i]] == of {
				near[i] = uint32(i)
			}
		}
		start = func(place uint32) uint32 { return near[place] }
	} else if t.whole.after.count(0) > 0 {
		x.pending = append(x.pending, pending{row: -1})
		t.outer[0] = int32(len(x.pending))
	}
	if len(x.pending) == 0 {
		return
	}
	list, err := x.by(t.ctx, x.endsIn(t.shape, func(place uint32) int32 { return t.outer[start(place)] - 1 }), len(x.pending))
	if err != nil {
		t.err = err
		return
	}
	below := make(map[int]*pending)
	for i := range x.pending {
		p := &x.pending[i]
		for g, n := range list[i] {
			f := x.family(t.shape, g, p.depth, n)
			f.self = f.total
			p.list = append(p.list, f)
		}
		slices.SortFunc(p.list, func(a, b family) int { return a.heavier(&b.tableRow) })
		below[p.row] = p
	}
	var out []tableRow
	var way []*pending // those that are not complete yet, the innermost last
	put := func(until func(p *pending) bool) {
		for len(way) > 0 {
			p := way[len(way)-1]
			if len(p.list) == 0 {
				way = way[:len(way)-1]
			} else if until(p) {
				return
			} else {
				out = append(out, p.list[0].tableRow)
				p.list = p.list[1:]
			}
		}
	}
	if p := below[-1]; p != nil {
		way = append(way, p)
	}
	for i := range t.rows {
		row := &t.rows[i]
		put(func(p *pending) bool {
			return p.depth < row.depth || p.depth == row.depth && row.heavier(&p.list[0].tableRow) < 0
		})
		out = append(out, *row)
		if p := below[i]; p != nil {
			way = append(way, p)
		}
	}
	put(func(p *pending) bool { return false })
	if len(out) > t.most {
		out, t.more = out[:t.most], true
	}
	t.rows = out
}
