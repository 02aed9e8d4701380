package flame

import (
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Grower merges the stacks of a recording that is still being made. It visits each sample once, and
// nodes keep their index. Frames in which samples came late have symbols of their own, as
// MergeSamples makes them.
type Grower struct {
	m    merger
	ends [walk.NumEnds]growing
}

// growing is what is known of the stacks that end in one way, for the nodes that existed when the
// last of them was added.
type growing struct {
	place []uint32 // by index into p.Nodes: the merged node, 0 if not known yet
	own   []uint32 // by index into p.Nodes: samples that ended in it
}

// NewGrower returns a Grower without samples.
func NewGrower() *Grower {
	return &Grower{m: merger{raw: true, symbol: make(map[Symbol]uint32), Tree: Tree{Nodes: profile.NewTrie()}}}
}

// Add merges the stacks of samples that refer to p, whose tables may only have grown since the
// previous call, and returns the merged node of each.
func (g *Grower) Add(p *profile.Profile, samples []profile.Sample) []uint32 {
	m := &g.m
	m.p = p
	at := make([]uint32, len(samples))
	for i := range samples {
		s := &samples[i]
		e := &g.ends[s.End]
		if len(e.place) < len(p.Nodes) {
			e.place, e.own = grown(e.place, len(p.Nodes)), grown(e.own, len(p.Nodes))
			if s.End != walk.EndComplete && e.place[0] == 0 {
				e.place[0] = m.Nodes.Child(0, m.sym(Symbol{Func: NoFunc, End: s.End}))
			}
		}
		m.place = e.place
		e.own[s.Node]++
		at[i] = m.find(s.Node)
	}
	m.place = nil
	return at
}

// Node returns the parent and the symbol of a merged node.
func (g *Grower) Node(i uint32) profile.Node { return g.m.Nodes.At(i) }

// Len returns the number of merged nodes, with the root.
func (g *Grower) Len() int { return g.m.Nodes.Len() }

// Tree returns the tree of what was added so far, and the place of each merged node. It is valid
// until the next Add.
func (g *Grower) Tree() (*Tree, []uint32) {
	m := &g.m
	m.Samples, m.Line, m.Lines, m.tallies = nil, nil, nil, [NumTallies][]uint32{}
	m.resize()
	for end := range g.ends {
		e := &g.ends[end]
		if len(e.place) == 0 {
			continue
		}
		m.place, m.count = e.place, slices.Clone(e.own)
		m.spread()
		m.attribute(walk.End(end))
		m.findLines()
	}
	m.place, m.count = nil, nil
	place := m.sort()
	t := m.Tree
	return &t, place
}
