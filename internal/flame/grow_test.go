package flame

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// wild makes recordings that grow: few functions and lines, so that much is merged, and all sorts
// of stacks and ends.
type wild struct {
	*rand.Rand
	b     *profile.Builder
	nodes []uint32
	ends  []walk.End // that occur now
}

func newWild(seed uint64) *wild {
	w := &wild{Rand: rand.New(rand.NewPCG(seed, 11)), b: profile.NewBuilder(), nodes: []uint32{profile.RootNode}}
	for _, e := range w.Perm(int(walk.NumEnds))[:1+w.IntN(int(walk.NumEnds))] {
		w.ends = append(w.ends, walk.End(e))
	}
	return w
}

// batch returns what one read of the file yields: new tables, and samples that refer to them and to
// what was there before.
func (w *wild) batch() []profile.Sample {
	for range w.IntN(30) {
		f := w.b.Func(profile.Func{Name: fmt.Sprint("pkg.Class.m", w.IntN(5)), Module: []string{"", "libx.so"}[w.IntN(2)]})
		frame := w.b.Frame(profile.Frame{Func: f, Kind: []walk.Kind{walk.KindC2, walk.KindInterpreted}[w.IntN(2)], Line: int32(w.IntN(4)),
			Prov: walk.Provenance(w.IntN(3)), Flags: walk.FrameFlags(w.IntN(8))})
		w.nodes = append(w.nodes, w.b.Node(w.nodes[w.IntN(len(w.nodes))], frame))
	}
	out := make([]profile.Sample, w.IntN(25))
	// Most batches have stacks of only some ends: the others do not know the nodes.
	ends := w.ends[:1+w.IntN(len(w.ends))]
	for i := range out {
		out[i] = profile.Sample{Node: w.nodes[w.IntN(len(w.nodes))], End: ends[w.IntN(len(ends))]}
	}
	return out
}

// tables returns those of the recording so far.
func (w *wild) tables() *profile.Profile {
	p := *w.b.Profile()
	p.Events, p.Threads = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "count"}}, []profile.Thread{{PID: 1, TID: 1}}
	for i := range w.b.Nodes() {
		p.Nodes = append(p.Nodes[:i], w.b.At(uint32(i)))
	}
	return &p
}

// placed is everything that a tree holds for a place.
type placed struct {
	depth   uint32
	symbol  Symbol
	samples uint32
	tallies [NumTallies]uint64
	line    int32
	lines   uint32
}

func (t *Tree) placed() []placed {
	var out []placed
	for i, id := range t.Order {
		x := placed{depth: t.Depth[i], samples: t.Samples[id], line: t.Line[id], lines: t.Lines[id]}
		if i > 0 {
			x.symbol = t.Symbols[t.Nodes.At(id).Frame]
		}
		for sort := range x.tallies {
			x.tallies[sort] = t.Tally(sort, id)
		}
		out = append(out, x)
	}
	return out
}

// TestGrower compares a tree that grew with the tree of the same stacks made at once: after every
// step, as the stacks were taken and rewritten, with the place of each sample.
func TestGrower(t *testing.T) {
	grown, rewritten := 0, 0
	for seed := range uint64(150) {
		w := newWild(seed)
		g := NewGrower()
		var all []profile.Sample
		var at []uint32
		steps := 1 + w.IntN(12)
		for step := range steps {
			fresh := w.batch()
			p := w.tables()
			at = append(at, g.Add(p, fresh)...)
			all = append(all, fresh...)
			if w.IntN(3) == 0 && step < steps-1 {
				continue // several batches before the next comparison
			}
			got, place := g.Tree()
			p.Samples = all
			want, places, err := MergeSamples(p)
			if err != nil {
				t.Fatal(err)
			}
			compare := func(what string, got, want *Tree, gotAt, wantAt func(i int) uint32) {
				t.Helper()
				a, b := got.placed(), want.placed()
				if len(a) != len(b) {
					t.Fatalf("seed %d, step %d, %s: %d places, want %d", seed, step, what, len(a), len(b))
				}
				for i := range a {
					if a[i] != b[i] {
						t.Fatalf("seed %d, step %d, %s: place %d is %+v, want %+v", seed, step, what, i, a[i], b[i])
					}
				}
				for i := range all {
					if gotAt(i) != wantAt(i) {
						t.Fatalf("seed %d, step %d, %s: sample %d is in place %d, want %d", seed, step, what, i, gotAt(i), wantAt(i))
					}
				}
			}
			compare("as taken", got, want, func(i int) uint32 { return place[at[i]] }, func(i int) uint32 { return places[i] })
			grown++
			for i := range at { // the path to a node is that of its tree
				if n := g.Node(at[i]); int(at[i]) >= g.Len() || n != got.Nodes.At(at[i]) {
					t.Fatalf("seed %d, step %d: node %d is %+v of %d", seed, step, at[i], n, g.Len())
				}
			}
			n := len(p.Funcs)
			rw := &Rewriting{Drop: make([]bool, n), Group: make([]uint32, n), Fold: make([]bool, n), Names: []profile.Func{{Name: "one"}, {Name: "two"}}}
			for i := range n {
				rw.Drop[i], rw.Fold[i], rw.Group[i] = w.IntN(4) == 0, w.IntN(2) == 0, uint32(max(0, w.IntN(6)-3))
			}
			a, to, _ := got.Rewrite(p, rw)
			b, too, _ := want.Rewrite(p, rw)
			compare("rewritten", a, b, func(i int) uint32 { return to[place[at[i]]] }, func(i int) uint32 { return too[places[i]] })
			// Rewriting the stacks themselves yields the same tree, except for what a frame that
			// stands for many says of them, and for what only folded frames called.
			whole, wholes, err := MergeSamples(rw.Apply(p))
			if err != nil {
				t.Fatal(err)
			}
			x, y := a.placed(), whole.placed()
			left := make([]uint32, len(x)) // place without the empty ones
			kept := x[:0]
			for i := range x {
				left[i] = uint32(len(kept))
				if i == 0 || x[i].samples > 0 {
					kept = append(kept, x[i])
				}
			}
			plain := func(list []placed) {
				for i := range list {
					list[i] = placed{depth: list[i].depth, symbol: list[i].symbol, samples: list[i].samples}
				}
			}
			plain(kept)
			plain(y)
			if !slices.Equal(kept, y) || !slices.EqualFunc(at, wholes, func(node, p uint32) bool { return left[to[place[node]]] == p }) {
				t.Fatalf("seed %d, step %d: the tree rewritten is\n%+v\nthat of the rewritten stacks\n%+v", seed, step, kept, y)
			}
			if len(b.Order) < len(want.Order) {
				rewritten++
			}
		}
	}
	if grown < 300 || rewritten < 200 {
		t.Errorf("%d trees were compared, %d of them were smaller when rewritten", grown, rewritten)
	}
}
