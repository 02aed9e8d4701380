package view

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/candid-profiler/candid/internal/profile"
)

// ways are what walking a tree up and down needs of it.
type ways struct {
	depth, parent, end []uint32 // by place; end is one past the last place below
	deepest            int
	method             []int32  // by symbol: see methods
	key                []uint32 // by symbol: the method, or what is none by itself
	keys               int
	methods            int
	makers             sync.Pool // of halves of sandwiches, whose lists are as long as the tree
}

// ways gives those of a tree, which are made when they are needed first.
func (r *Recording) ways(s *shape) *ways {
	s.once.Do(func() {
		p := *r.p
		p.Funcs = s.funcs
		w := &ways{depth: s.tree.Depth, method: methods(&p, s.tree)}
		if s == r.base && r.grower == nil {
			w.parent = r.parent
		} else {
			w.parent = parents(s.tree)
		}
		n := len(w.parent)
		w.end = make([]uint32, n)
		for i := n - 1; i >= 0; i-- {
			w.deepest = max(w.deepest, int(w.depth[i]))
			w.end[i] = max(w.end[i], uint32(i+1))
			if up := w.parent[i]; i > 0 && w.end[up] < w.end[i] {
				w.end[up] = w.end[i]
			}
		}
		for _, m := range w.method {
			w.methods = max(w.methods, int(m)+1)
		}
		w.key = make([]uint32, len(w.method))
		for symbol, m := range w.method {
			if w.key[symbol] = uint32(m); m < 0 {
				w.key[symbol] = uint32(w.methods + symbol)
			}
		}
		w.keys = w.methods + len(w.method)
		s.ways = w
	})
	return s.ways
}

// placeSums are what ended in each place of a tree, and what ended there or below it.
type placeSums struct {
	of             *shape
	self, total    []uint64
	count, samples []uint32 // the same in samples, of which a recording never has more
	coarse         []uint32 // of count: those whose innermost frame is walk.Coarse; nil: none
}

// newTotals gives empty ones, mostly such as were used before: their memory would cost more
// than the adding up.
func (r *Recording) newTotals(s *shape) *placeSums {
	n := len(s.tree.Order)
	r.mu.Lock()
	var t *placeSums
	if i := slices.IndexFunc(r.spareTotals, func(t *placeSums) bool { return len(t.self) == n }); i >= 0 {
		t = r.spareTotals[i]
		r.spareTotals = slices.Delete(r.spareTotals, i, i+1)
	}
	if t == nil && n >= manyPlaces {
		t = r.unusedTotals(n)
	}
	r.mu.Unlock()
	if t == nil {
		t = &placeSums{of: s, self: make([]uint64, n), total: make([]uint64, n), count: make([]uint32, n), samples: make([]uint32, n)}
		if r.coarse != nil {
			t.coarse = make([]uint32, n)
		}
		return t
	}
	t.of = s
	clear(t.self)
	clear(t.count)
	clear(t.coarse)
	return t
}

// manyPlaces is of how many places totals are too large to have more of them than are used:
// 100 MB and more. A variable for tests.
var manyPlaces = 1 << 22

// unusedTotals takes away totals of n places that are remembered and that nobody uses now,
// the oldest first; nil if there are none. They are made again if they are asked for again.
// r.mu is held.
func (r *Recording) unusedTotals(n int) *placeSums {
	for _, k := range r.last {
		if k.users == 0 && k.totals != nil && len(k.totals.self) == n {
			t := k.totals
			k.totals = nil
			return t
		}
	}
	return nil
}

// place says what ended where.
func (r *Recording) place(t *placeSums, ends []profile.Count) {
	for i := range ends {
		if n := &ends[i]; n.Samples > 0 {
			at := t.of.placeOf(r.cols.ends[i])
			t.self[at] += n.Weight
			t.count[at] += uint32(n.Samples)
			if r.coarse != nil {
				t.coarse[at] += uint32(math.Round(float64(n.Samples) * float64(r.coarse[i])))
			}
		}
	}
}

// stretches cuts n places in one part for each CPU, and gives each to a worker of its own.
func stretches(n int, f func(worker, from, to int)) {
	workers := workersFor(n)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(w, n*w/workers, n*(w+1)/workers)
		}()
	}
	wg.Wait()
}

func workersFor(places int) int { return max(1, min(runtime.GOMAXPROCS(0), places/step)) }

// addUp adds up what is below each place. The error is the context's.
func (w *ways) addUp(ctx context.Context, t *placeSums) error {
	n := len(w.depth)
	// From the last place to the first: what lies below a place has been met, and waits for
	// it at its depth. Parents lie far apart, and there are millions.
	type waiting struct {
		from    int
		total   []uint64 // by depth
		samples []uint32
	}
	left := make([]waiting, workersFor(n))
	stretches(n, func(worker, from, to int) {
		wait := waiting{from, make([]uint64, w.deepest+2), make([]uint32, w.deepest+2)}
		left[worker] = wait
		for i := to - 1; i >= from; i-- {
			if i%step == 0 && ctx.Err() != nil {
				return
			}
			d := w.depth[i]
			total, samples := t.self[i]+wait.total[d+1], t.count[i]+wait.samples[d+1]
			wait.total[d+1], wait.samples[d+1] = 0, 0
			wait.total[d] += total
			wait.samples[d] += samples
			t.total[i], t.samples[i] = total, samples
		}
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	// What has waited in vain in one part is below the places on the way to its beginning.
	for _, wait := range left {
		if wait.from == 0 {
			continue
		}
		var total uint64
		var samples uint32
		for at := w.parent[wait.from]; ; at = w.parent[at] {
			d := w.depth[at]
			total += wait.total[d+1]
			samples += wait.samples[d+1]
			t.total[at] += total
			t.samples[at] += samples
			if at == 0 {
				break
			}
		}
	}
	return nil
}
