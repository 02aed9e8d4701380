package view

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/candid-profiler/candid/internal/profile"
)

// Where each thread, or each process, has a root of its own, the call tree begins with them,
// and callers end with them. What one has is only added up where somebody looks.

// groups are the threads or the processes of a recording.
type groups struct {
	of    []int32 // by thread
	n     int
	first uint32 // their symbols, after those of the tree: of threads, then of processes
}

// groupsOf gives them: thread or process. It is nil if the recording does not say which
// threads are of which process.
func (r *Recording) groupsOf(s *shownTree, how string) *groups {
	g := &groups{of: make([]int32, len(r.p.Threads)), n: len(r.p.Threads), first: uint32(len(s.tree.Symbols))}
	if how == "thread" {
		for t := range g.of {
			g.of[t] = int32(t)
		}
		return g
	}
	known := make(map[int]int32)
	for i, p := range r.p.Processes {
		known[p.PID] = int32(i)
	}
	for t := range g.of {
		at, ok := known[r.p.Threads[t].PID]
		if !ok {
			return nil
		}
		g.of[t] = at
	}
	g.n, g.first = len(r.p.Processes), g.first+uint32(len(r.p.Threads))
	return g
}

// threads are those of a group.
func (g *groups) threads(i int32) (out []uint32) {
	for t, of := range g.of {
		if of == i {
			out = append(out, uint32(t))
		}
	}
	return out
}

// split is a table whose rows are of groups.
type split struct {
	*groups
	r       *Recording
	q       *Query
	c       chosen
	sums    []profile.Count // by group
	kept    *remembered
	pending []pending
}

// pending is a row of callers that ends in groups.
type pending struct {
	row   int // -1: the rows are the first ones
	depth uint32
	list  []family
}

func (r *Recording) newSplit(q *Query, g *groups, kept *remembered) *split {
	x := &split{groups: g, r: r, q: q, c: r.choose(q), kept: kept, sums: make([]profile.Count, g.n)}
	for t, n := range kept.sum.threads {
		x.sums[g.of[t]].Add(n)
	}
	return x
}

// take calls f if a sample is chosen.
func (x *split) take(i int, f func(end, thread uint32, n profile.Count)) {
	cols := &x.r.cols
	k, last, t := cols.sort[i], cols.last[i], cols.thread[i]
	if !x.c.sorts[k] || !x.c.passes(last, t) {
		return
	}
	n := profile.Count{Samples: 1, Weight: x.r.weightOf(i)}
	if cols.sorts[k].spans && (x.q.From > 0 || x.q.To > 0) {
		var ok bool
		if n.Weight, ok = x.r.partOf(i, x.q.From, x.q.To); !ok {
			return
		}
	}
	f(last, t, n)
}

// denseSums is how many sums each CPU has as an array.
const denseSums = 1 << 20

// by adds up by group what slotOf, by end, says: the result is by slot, and by group in it.
// The error is the context's.
func (x *split) by(ctx context.Context, slotOf []int32, slots int) ([]map[int32]profile.Count, error) {
	r := x.r
	lo, hi := 0, len(r.p.Samples)
	if x.q.From > 0 || x.q.To > 0 {
		lo, hi = r.span(x.q.From, x.q.To)
	}
	out := make([]map[int32]profile.Count, slots)
	for i := range out {
		out[i] = make(map[int32]profile.Count)
	}
	var mu sync.Mutex
	sum := func(each func(f func(i int))) {
		var dense []profile.Count
		var touched []int
		var sparse map[int]profile.Count
		if slots*x.n <= denseSums {
			dense = make([]profile.Count, slots*x.n)
		} else {
			sparse = make(map[int]profile.Count)
		}
		each(func(i int) {
			slot := slotOf[r.cols.last[i]]
			if slot < 0 {
				return
			}
			x.take(i, func(_, thread uint32, n profile.Count) {
				at := int(slot)*x.n + int(x.of[thread])
				if dense == nil {
					was := sparse[at]
					was.Add(n)
					sparse[at] = was
					return
				}
				if dense[at].Samples == 0 {
					touched = append(touched, at)
				}
				dense[at].Add(n)
			})
		})
		mu.Lock()
		defer mu.Unlock()
		add := func(at int, n profile.Count) {
			m := out[at/x.n]
			was := m[int32(at%x.n)]
			was.Add(n)
			m[int32(at%x.n)] = was
		}
		for _, at := range touched {
			add(at, dense[at])
		}
		for at, n := range sparse {
			add(at, n)
		}
	}
	workers := max(1, min(runtime.GOMAXPROCS(0), (hi-lo)/(4*step)))
	var wg sync.WaitGroup
	for w := range workers {
		from, to := lo+(hi-lo)*w/workers, lo+(hi-lo)*(w+1)/workers
		wg.Add(1)
		go func() {
			defer wg.Done()
			sum(func(f func(i int)) {
				for i := from; i < to; i++ {
					if (i-from)%step == 0 && ctx.Err() != nil {
						return
					}
					f(i)
				}
			})
		}()
	}
	wg.Wait()
	if x.q.To > 0 {
		sum(func(f func(i int)) { r.after(r.reach, itself, hi, len(r.p.Samples), x.q.To, f) })
	}
	return out, ctx.Err()
}

// cells are what ended in each place, of a group.
func (x *split) cells(ctx context.Context, s *shownTree, group int32) ([]Cell, error) {
	r := x.r
	type part struct{ from, to int } // of byThread
	var parts []part
	all := 0
	threads := slices.DeleteFunc(x.threads(group), func(t uint32) bool { return x.kept.sum.threads[t].Samples == 0 })
	for _, t := range threads {
		lo, hi := r.turns(t, x.q.From, x.q.To)
		all += hi - lo
		for at := lo; at < hi; at += step {
			parts = append(parts, part{at, min(at+step, hi)})
		}
	}
	late := func(f func(i int)) {
		for _, t := range threads {
			if x.q.To > 0 {
				_, hi := r.turns(t, x.q.From, x.q.To)
				r.after(r.reaches, r.byTurn, hi, int(r.first[t+1]), x.q.To, f)
			}
		}
	}
	if all < len(r.cols.ends)/8 { // to look at all places would take longer
		var list []Cell
		add := func(i int) {
			x.take(i, func(end, _ uint32, n profile.Count) {
				list = append(list, Cell{Place: s.placeOf(r.cols.ends[end]), Count: n})
			})
		}
		for _, p := range parts {
			for _, i := range r.byThread[p.from:p.to] {
				add(int(i))
			}
		}
		late(add)
		slices.SortFunc(list, func(a, b Cell) int { return cmp.Compare(a.Place, b.Place) })
		return mergeCells(list), ctx.Err()
	}
	sums := make([]*partial, max(1, min(runtime.GOMAXPROCS(0), len(parts))))
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range sums {
		sums[w] = r.newPartial()
		ends := sums[w].ends
		wg.Add(1)
		go func() {
			defer wg.Done()
			for ctx.Err() == nil {
				k := int(next.Add(1)) - 1
				if k >= len(parts) {
					return
				}
				for _, i := range r.byThread[parts[k].from:parts[k].to] {
					x.take(int(i), func(end, _ uint32, n profile.Count) { ends[end].Add(n) })
				}
			}
		}()
	}
	wg.Wait()
	defer r.keep(sums)
	late(func(i int) { x.take(i, func(end, _ uint32, n profile.Count) { sums[0].ends[end].Add(n) }) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, o := range sums[1:] {
		for i := range o.ends {
			sums[0].ends[i].Add(o.ends[i])
		}
	}
	return r.cells(sums[0].ends, s), nil
}

// maxGroupPlaces is in how many places of groups stacks may end that are remembered.
const maxGroupPlaces = 2 << 20

// totals are what a group has in each place.
func (x *split) totals(ctx context.Context, s *shownTree, group int32) (*placeSums, error) {
	key := x.key(s, group)
	k := x.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.groupsOf != s {
		k.groups, k.groupsOf, k.groupPlaces = nil, s, 0
	}
	if t := k.groups[key]; t != nil {
		return t, nil
	}
	cells, err := x.cells(ctx, s, group)
	if err != nil {
		return nil, err
	}
	t := x.r.ways(s).totalsOf(s, cells)
	if k.groupPlaces += len(cells); k.groups == nil || k.groupPlaces > maxGroupPlaces {
		k.groups, k.groupPlaces = make(map[uint32]*placeSums), len(cells)
	}
	k.groups[key] = t
	return t, nil
}

// key is by what a group's row is told from others.
func (g *groups) key(s *shownTree, group int32) uint32 {
	return s.ways.groupKey(s, g.first+uint32(group))
}

// family is the row of a group.
func (x *split) family(s *shownTree, group int32, depth uint32, n profile.Count) family {
	return family{key: x.key(s, group), tableRow: tableRow{depth: depth, symbol: x.first + uint32(group), place: nowhere, total: n.Weight, samples: uint32(n.Samples), leaf: true}}
}

// endsIn gives by end which slot its place is in: of says so, -1 for none.
func (x *split) endsIn(s *shownTree, of func(place uint32) int32) []int32 {
	out := make([]int32, len(x.r.cols.ends))
	for end, node := range x.r.cols.ends {
		out[end] = of(s.placeOf(node))
	}
	return out
}

// rootless is what each group has that ended in no frame; nil: nothing.
func (x *split) rootless(t *table) map[int32]profile.Count {
	if t.whole.after.count(0) == 0 {
		return nil
	}
	list, err := x.by(t.ctx, x.endsIn(t.shape, func(place uint32) int32 {
		if place == 0 {
			return 0
		}
		return -1
	}), 1)
	t.err = err
	return list[0]
}

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

// inGroup is what lies below a group in the call tree.
func (t *table) inGroup(f *family) []family {
	after, err := t.split.totals(t.ctx, t.shape, int32(f.symbol-t.split.first))
	if err != nil {
		t.err = err
		return nil
	}
	t.part = &grove{end: after.end, parent: t.ways.parent, after: after}
	return t.families(t.part.below([]rowPart{{}}), f.depth+1)
}

// reveal opens the rows on the way to a place, below a group, by its symbol, or else below
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

// outermost are the rows of groups below a row of callers: what of it nobody called.
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
	// Where a method's callers are shown, a stack begins at its innermost frame of it.
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
	var way []*pending // those that are not all there, the innermost last
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
