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

// If each thread, or each process, has a root of its own, the call tree begins with them, and
// callers end with them. The sums of one of them are computed only when its rows are shown.

// groups are the threads or the processes of a recording.
type groups struct {
	of    []int32 // by thread
	n     int
	first uint32 // their first symbol, after those of the tree: of threads, then of processes
}

// groupsOf returns the groups, by thread or process. It is nil if the recording does not say which
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

// threads returns the threads of a group.
func (g *groups) threads(i int32) (out []uint32) {
	for t, of := range g.of {
		if of == i {
			out = append(out, uint32(t))
		}
	}
	return out
}

// split is a table whose rows are divided by group.
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

// denseSums is the largest number of sums that each CPU keeps in an array.
const denseSums = 1 << 20

// by adds up by group and slot: slotOf has the slot by end. The result is by slot, and in each by
// group. The error is the context's.
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

// cells returns the sums of a group in each place.
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
	if all < len(r.cols.ends)/8 { // visiting all places would take longer
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

// maxGroupPlaces is how many places with samples of groups are remembered.
const maxGroupPlaces = 2 << 20

// totals returns the sums of a group by place.
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

// key returns the key of a group's row.
func (g *groups) key(s *shownTree, group int32) uint32 {
	return s.ways.groupKey(s, g.first+uint32(group))
}

// family returns the row of a group.
func (x *split) family(s *shownTree, group int32, depth uint32, n profile.Count) family {
	return family{key: x.key(s, group), tableRow: tableRow{depth: depth, symbol: x.first + uint32(group), place: nowhere, total: n.Weight, samples: uint32(n.Samples), leaf: true}}
}

// endsIn returns by end the slot of its place: of returns it, -1 for none.
func (x *split) endsIn(s *shownTree, of func(place uint32) int32) []int32 {
	out := make([]int32, len(x.r.cols.ends))
	for end, node := range x.r.cols.ends {
		out[end] = of(s.placeOf(node))
	}
	return out
}

// rootless returns the samples of each group that ended in no frame; nil: none.
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
