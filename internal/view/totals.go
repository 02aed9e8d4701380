package view

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/candid-profiler/candid/internal/profile"
)

// treeIndex holds what walking a tree up and down needs.
type treeIndex struct {
	depth, parent, end []uint32 // by place; end is one past the last place below
	ends               []uint32 // places in which samples end, ascending
	ranks              ranks    // of ends
	endAt              []uint32 // by index into columns.ends: the index into ends; nil: they are the same
	method             []int32  // by symbol: see methods
	key                []uint32 // by symbol: the method, or a key of its own if it is none
	keys               int
	methods            int
	makers             sync.Pool // of halves of sandwiches, whose lists are as long as the tree
}

// ways returns the index of a tree, which is made when it is first needed.
func (r *Recording) ways(s *shownTree) *treeIndex {
	s.once.Do(func() {
		p := *r.p
		p.Funcs = s.funcs
		w := &treeIndex{depth: s.tree.Depth, method: methods(&p, s.tree)}
		if s == r.raw && r.grower == nil {
			w.parent = r.parent
		} else {
			w.parent = parents(s.tree)
		}
		n := len(w.parent)
		w.end = make([]uint32, n)
		for i := n - 1; i >= 0; i-- {
			w.end[i] = max(w.end[i], uint32(i+1))
			if up := w.parent[i]; i > 0 && w.end[up] < w.end[i] {
				w.end[up] = w.end[i]
			}
		}
		w.findEnds(r, s)
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

// findEnds finds the places in which samples end.
func (w *treeIndex) findEnds(r *Recording, s *shownTree) {
	w.ends = r.cols.ends
	if s.place != nil {
		w.ends = make([]uint32, len(r.cols.ends))
		for i, node := range r.cols.ends {
			w.ends[i] = s.place[node]
		}
		slices.Sort(w.ends)
		w.ends = slices.Clip(slices.Compact(w.ends))
	}
	w.ranks = newRanks(w.ends, len(w.end))
	if s.place != nil {
		w.endAt = make([]uint32, len(r.cols.ends))
		for i, node := range r.cols.ends {
			w.endAt[i] = w.ranks.of(s.place[node])
		}
	}
}

// endOf returns the index into ends for an index into columns.ends.
func (w *treeIndex) endOf(i int) uint32 {
	if w.endAt == nil {
		return uint32(i)
	}
	return w.endAt[i]
}

// ranks hold how many of some places lie before each place.
type ranks []struct {
	in     uint64 // bits: which of 64 places are in the set
	before uint32 // how many of the set lie before these 64
}

// newRanks returns the ranks of places in order, out of n places.
func newRanks(places []uint32, n int) ranks {
	k := make(ranks, n/64+1)
	for _, at := range places {
		k[at/64].in |= 1 << (at % 64)
	}
	before := uint32(0)
	for i := range k {
		k[i].before = before
		before += uint32(bits.OnesCount64(k[i].in))
	}
	return k
}

// of returns how many lie before place i, which may be one past the last place.
func (k ranks) of(i uint32) uint32 {
	word := &k[i/64]
	return word.before + uint32(bits.OnesCount64(word.in&(1<<(i%64)-1)))
}

// has reports whether place i is one of them.
func (k ranks) has(i uint32) bool { return k[i/64].in>>(i%64)&1 != 0 }

// placeSums are the sums of what ended in each place of a tree, and of what ended there or below
// it. Places come before those below them, so it is enough to know what has ended in all places
// before each. Samples end in few places, a seventh of those of a large program.
type placeSums struct {
	of      *shownTree
	end     []uint32 // as in treeIndex
	ends    ranks    // of places in which samples end
	few     []uint32 // those places themselves, for a part of the samples; then ends may be nil
	weights []uint64 // by ends, and one more: the sum of the ends before
	counts  []uint32 // the same in samples, whose number always fits
	rough   []uint32 // by ends: samples whose innermost frame is walk.Coarse; nil: none
}

func (t *placeSums) rank(place uint32) uint32 {
	if t.ends != nil {
		return t.ends.of(place)
	}
	low, high := 0, len(t.few)
	for low < high {
		if mid := (low + high) / 2; t.few[mid] < place {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return uint32(low)
}

// self is the weight of what ended in a place, and total that of what ended there or below.
func (t *placeSums) self(place uint32) uint64 {
	return t.weights[t.rank(place+1)] - t.weights[t.rank(place)]
}

func (t *placeSums) total(place uint32) uint64 {
	return t.weights[t.rank(t.end[place])] - t.weights[t.rank(place)]
}

// count and samples are the same in samples.
func (t *placeSums) count(place uint32) uint32 {
	return t.counts[t.rank(place+1)] - t.counts[t.rank(place)]
}

func (t *placeSums) samples(place uint32) uint32 {
	return t.counts[t.rank(t.end[place])] - t.counts[t.rank(place)]
}

// addUp turns what ended in each of some places into running sums of what ended in those before.
func (t *placeSums) addUp() {
	var weight uint64
	var count uint32
	for i := range t.weights {
		weight, t.weights[i] = weight+t.weights[i], weight
		count, t.counts[i] = count+t.counts[i], count
	}
}

// newTotals returns the sums of ends, which are by index into cols.ends.
func (r *Recording) newTotals(s *shownTree, ends []profile.Count) *placeSums {
	w := r.ways(s)
	n := len(w.ends)
	t := &placeSums{of: s, end: w.end, ends: w.ranks, weights: make([]uint64, n+1), counts: make([]uint32, n+1)}
	if r.coarse != nil {
		t.rough = make([]uint32, n)
	}
	for i := range ends {
		n := &ends[i]
		if n.Samples == 0 {
			continue
		}
		at := w.endOf(i)
		t.weights[at] += n.Weight
		t.counts[at] += uint32(n.Samples)
		if r.coarse != nil {
			t.rough[at] += uint32(math.Round(float64(n.Samples) * float64(r.coarse[i])))
		}
	}
	t.addUp()
	return t
}

// totalsOf returns the sums of cells, which are in the order of their places.
func (w *treeIndex) totalsOf(s *shownTree, cells []Cell) *placeSums {
	n := len(cells)
	t := &placeSums{of: s, end: w.end, few: make([]uint32, n), weights: make([]uint64, n+1), counts: make([]uint32, n+1)}
	for i, c := range cells {
		t.few[i], t.weights[i], t.counts[i] = c.Place, c.Weight, uint32(c.Samples)
	}
	t.addUp()
	if n > len(w.end)/manyPlaces {
		t.ends = newRanks(t.few, len(w.end))
	}
	return t
}

// manyPlaces is how many places of the tree ranks cover in as much memory as the number of one
// place takes. If fewer than one in so many places has an end, places are searched by number.
const manyPlaces = 16

// next returns the first place from one on in which something ended, or one behind all of them.
func (t *placeSums) next(place uint32) uint32 {
	if at := t.rank(place); int(at) < len(t.few) {
		return t.few[at]
	}
	return uint32(len(t.end))
}

// stretches divides n places into one part for each CPU, and passes each to a worker of its own.
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
