package view

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/candid-profiler/candid/internal/profile"
)

// treeIndex are what walking a tree up and down needs of it.
type treeIndex struct {
	depth, parent, end []uint32 // by place; end is one past the last place below
	ends               []uint32 // places in which samples end, ascending
	ranks              ranks    // of these
	endAt              []uint32 // by index into columns.ends: into ends; nil: they are the same
	method             []int32  // by symbol: see methods
	key                []uint32 // by symbol: the method, or what is none by itself
	keys               int
	methods            int
	makers             sync.Pool // of halves of sandwiches, whose lists are as long as the tree
}

// ways gives those of a tree, which are made when they are needed first.
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

// endOf gives where in ends samples are that end in one of columns.ends.
func (w *treeIndex) endOf(i int) uint32 {
	if w.endAt == nil {
		return uint32(i)
	}
	return w.endAt[i]
}

// ranks tell how many of some places lie before each place.
type ranks []struct {
	in     uint64 // bits: which of 64 places are among those
	before uint32 // how many of those lie before these 64
}

// newRanks is of places in their order, of n that there are.
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

// of gives how many lie before place i, which may be one more than there are.
func (k ranks) of(i uint32) uint32 {
	word := &k[i/64]
	return word.before + uint32(bits.OnesCount64(word.in&(1<<(i%64)-1)))
}

// has reports whether place i is one of them.
func (k ranks) has(i uint32) bool { return k[i/64].in>>(i%64)&1 != 0 }

// placeSums are what ended in each place of a tree, and what ended there or below it. Places
// lie in front of what is below them: what has ended in all places before each is enough to
// know. And samples end in few of them, a seventh of those of a large program.
type placeSums struct {
	of      *shownTree
	end     []uint32 // as in ways
	ends    ranks    // of places in which samples end
	few     []uint32 // those places themselves, of a part of the samples; there ends may be nil
	weights []uint64 // by ends, and one more: what ended in those before
	counts  []uint32 // the same in samples, of which a recording never has more
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

// self is the weight of what ended in a place, and total of what ended there or below.
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

// addUp adds up, of what ended in each of some places, what ended in those before.
func (t *placeSums) addUp() {
	var weight uint64
	var count uint32
	for i := range t.weights {
		weight, t.weights[i] = weight+t.weights[i], weight
		count, t.counts[i] = count+t.counts[i], count
	}
}

// newTotals makes those of what ended where, by index into cols.ends.
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

// totalsOf makes those of cells, which are in the order of their places.
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

// manyPlaces is of how many places ranks take as much memory as the number of one place. With
// fewer places than that they are looked for among their numbers.
const manyPlaces = 16

// next gives the first place from one on in which something ended, or one behind all of them.
func (t *placeSums) next(place uint32) uint32 {
	if at := t.rank(place); int(at) < len(t.few) {
		return t.few[at]
	}
	return uint32(len(t.end))
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
