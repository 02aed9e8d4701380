// Package flame merges the stacks of a recording into the tree that pages draw, and describes the
// recording for them.
package flame

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// A Symbol is what a frame of the graph shows: a function, in one kind of code. The same method
// interpreted and compiled is two symbols.
type Symbol struct {
	Func uint32 // index into Funcs, or NoFunc with End set
	Kind walk.Kind
	End  walk.End // for the frames that stand for a missing outer part
	// Skid means that samples came late there, which count for the caller: walk.Skid. Only trees
	// that must also be shown that way have such symbols: see Tree.FoldSkid.
	Skid bool
}

// NoFunc is the Func of a symbol that stands for missing frames.
const NoFunc = ^uint32(0)

// Properties of a node's samples that are counted separately.
const (
	Derived   = iota // found by reading code
	Heuristic        // a guess
	Stitched         // read after the sample
	Coarse           // position only known to the next safepoint
	Virtual          // on a virtual thread's own stack
	NumTallies
)

// Cell is the sum of what ended in one node, in one thread, for one event.
type Cell struct {
	Node, Thread uint32
	Count        uint32 // samples
	Event        uint16
	Weight       uint64 // in the event's unit
}

// Tree is a profile as the page needs it: nodes in the order in which a walk from the root visits
// them, heaviest child first, so that a node's subtree follows it without a gap. A recording of a
// large program has millions of nodes, so their data is in columns, and columns that are not needed
// do not exist.
type Tree struct {
	Symbols []Symbol
	Nodes   *profile.Trie // of symbols; node 0 is the root and has no symbol
	Order   []uint32      // by place on the page: index into nodes
	Depth   []uint32      // by place
	Cells   []Cell        // sorted by the node's place, thread, event

	// By index into nodes.
	Samples []uint32             // those that passed through it
	tallies [NumTallies][]uint32 // of these; nil if all are 0
	Line    []int32              // the line with most samples, 0 if unknown
	Lines   []uint32             // how many different lines there are
}

// Tally returns how many of a node's samples have one property, such as Derived.
func (t *Tree) Tally(sort int, node uint32) uint64 {
	if c := t.tallies[sort]; int(node) < len(c) {
		return uint64(c[node])
	}
	return 0
}

// merger builds the tree.
type merger struct {
	Tree
	p      *profile.Profile
	symbol map[Symbol]uint32
	symOf  []uint32 // by frame: its symbol, plus 1; 0 if not known yet
	path   []uint32
	at     []uint32 // by sample: the merged node; nil if cells are wanted
	raw    bool     // frames with walk.Skid have nodes

	// For the stacks that end in one way. Stacks that lack their outer part stand under a frame
	// that says so, and never merge with whole ones. Both columns are as long as p.Nodes, or in a
	// recording that grows as long as that was when such a stack was last added.
	place   []uint32 // by index into p.Nodes: the merged node, 0 if not known yet
	count   []uint32 // by index into p.Nodes: samples that passed through it
	several int32    // how many nodes have more than one line; each has its own number, negated, as its line
	group   []uint32 // of merged nodes with several lines: indices into p.Nodes, by merged node
	first   []uint32 // where the indices of a merged node begin in group
}

// Merge returns the tree of a profile. The error wraps profile.ErrInvalid if p refers to what it
// does not hold.
func Merge(p *profile.Profile) (*Tree, error) {
	m, err := newMerger(p)
	if err != nil {
		return nil, err
	}
	m.p = profile.Summed(p)
	m.mergeAll()
	m.Cells = mergeCells(m.Cells)
	place := m.sortBesideLines()
	for i := range m.Cells {
		m.Cells[i].Node = place[m.Cells[i].Node]
	}
	slices.SortFunc(m.Cells, compareCells)
	t := m.Tree // without what only merging needs
	return &t, nil
}

// MergeSamples returns the tree of a profile without cells, and for each sample the place in it
// where its stack ends. Frames in which samples came late have symbols of their own: see
// Tree.FoldSkid.
func MergeSamples(p *profile.Profile) (*Tree, []uint32, error) {
	m, err := newMerger(p)
	if err != nil {
		return nil, nil, err
	}
	m.at, m.raw = make([]uint32, len(p.Samples)), true
	m.mergeAll()
	place := m.sortBesideLines()
	for i, id := range m.at {
		m.at[i] = place[id]
	}
	t := m.Tree
	return &t, m.at, nil
}

func newMerger(p *profile.Profile) (*merger, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return &merger{p: p, symbol: make(map[Symbol]uint32), Tree: Tree{Nodes: profile.NewTrie()}}, nil
}

// mergeAll merges all stacks, and leaves the lines of the whole ones to findLines.
func (m *merger) mergeAll() {
	p := m.p
	m.symOf = make([]uint32, len(p.Frames))
	var ends [walk.NumEnds]bool
	p.Each(func(s *profile.Sample, _ uint64) { ends[s.End] = true })
	// The whole stacks come last: there are most of them, and counting them no longer needs what
	// finds nodes.
	for end := walk.NumEnds - 1; end > walk.EndComplete; end-- {
		if ends[end] {
			m.merge(end)
			m.attribute(end)
			m.findLines()
		}
	}
	m.merge(walk.EndComplete)
	m.Nodes.Seal()
	m.attribute(walk.EndComplete)
	m.symOf = nil
}

func (m *merger) sym(s Symbol) uint32 {
	i, ok := m.symbol[s]
	if !ok {
		i = uint32(len(m.Symbols))
		m.Symbols = append(m.Symbols, s)
		m.symbol[s] = i
	}
	return i
}

// merge adds the stacks that end with end.
func (m *merger) merge(end walk.End) {
	if m.place == nil {
		m.place, m.count = make([]uint32, len(m.p.Nodes)), make([]uint32, len(m.p.Nodes))
	} else {
		clear(m.place)
		clear(m.count)
	}
	if end != walk.EndComplete {
		m.place[0] = m.Nodes.Child(0, m.sym(Symbol{Func: NoFunc, End: end}))
	}
	m.p.Each(func(s *profile.Sample, n uint64) {
		if s.End == end {
			m.count[s.Node] += uint32(n)
		}
	})
	m.spread()
	// Nodes that follow each other usually do so in the merged tree too.
	for i := 1; i < len(m.count); i++ {
		if m.count[i] > 0 {
			n := m.p.Nodes[i]
			if m.skids(n.Frame) {
				m.place[i] = m.place[n.Parent]
				continue
			}
			m.place[i] = m.Nodes.Child(m.place[n.Parent], m.symbolOf(n.Frame))
		}
	}
	i := -1
	m.p.Each(func(s *profile.Sample, n uint64) {
		i++
		switch {
		case s.End != end:
		case m.at != nil:
			m.at[i] = m.place[s.Node]
		default:
			m.Cells = append(m.Cells, Cell{Node: m.place[s.Node], Thread: s.Thread, Event: s.Event, Count: uint32(n), Weight: s.Weight})
		}
	})
}

// symbolOf returns the symbol of a frame.
func (m *merger) symbolOf(frame uint32) uint32 {
	if known := m.symOf[frame]; known > 0 {
		return known - 1
	}
	f := &m.p.Frames[frame]
	i := m.sym(Symbol{Func: f.Func, Kind: f.Kind, Skid: f.Flags&walk.Skid != 0})
	m.symOf[frame] = i + 1
	return i
}

// skids reports whether a frame is not shown: its time is its caller's.
func (m *merger) skids(frame uint32) bool {
	return !m.raw && m.p.Frames[frame].Flags&walk.Skid != 0
}

// spread counts samples for all nodes that they passed through, not only where they ended.
func (m *merger) spread() {
	for i := len(m.count) - 1; i > 0; i-- {
		if c := m.count[i]; c > 0 {
			m.count[m.p.Nodes[i].Parent] += c
		}
	}
}

// find returns the merged node for p.Nodes[n].
func (m *merger) find(n uint32) uint32 {
	path := m.path[:0]
	for n != profile.RootNode && m.place[n] == 0 {
		path = append(path, n)
		n = m.p.Nodes[n].Parent
	}
	at := m.place[n]
	for _, n := range slices.Backward(path) {
		if frame := m.p.Nodes[n].Frame; !m.skids(frame) {
			f := &m.p.Frames[frame]
			at = m.Nodes.Child(at, m.sym(Symbol{Func: f.Func, Kind: f.Kind, Skid: f.Flags&walk.Skid != 0}))
		}
		m.place[n] = at
	}
	m.path = path
	return at
}

// resize makes the columns as long as there are nodes.
func (m *merger) resize() {
	n := m.Nodes.Len()
	m.Samples = grown(m.Samples, n)
	m.Line = grown(m.Line, n)
	m.Lines = grown(m.Lines, n)
	for i, c := range m.tallies {
		if c != nil {
			m.tallies[i] = grown(c, n)
		}
	}
}

func grown[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	if s == nil {
		return make([]T, n)
	}
	return append(s, make([]T, n-len(s))...)
}

// attribute counts for each merged node how its frames were found, and at which line they were;
// findLines must be called after it.
func (m *merger) attribute(end walk.End) {
	m.resize()
	m.several = 0
	for i := 1; i < len(m.count); i++ {
		c := m.count[i]
		if c == 0 || m.skids(m.p.Nodes[i].Frame) {
			continue
		}
		f := &m.p.Frames[m.p.Nodes[i].Frame]
		id := m.place[i]
		m.Samples[id] += c
		switch f.Prov {
		case walk.Exact:
		case walk.Derived:
			m.add(Derived, id, c)
		default:
			m.add(Heuristic, id, c)
		}
		if f.Flags&walk.Stitched != 0 {
			m.add(Stitched, id, c)
		}
		if f.Flags&walk.Coarse != 0 {
			m.add(Coarse, id, c)
		}
		if f.Flags&walk.Virtual != 0 {
			m.add(Virtual, id, c)
		}
		switch {
		case f.Line <= 0:
		case m.Lines[id] == 0:
			m.Line[id], m.Lines[id] = f.Line, 1
		case m.Line[id] > 0 && m.Line[id] != f.Line:
			m.several++
			m.Line[id] = -m.several
		}
	}
	m.Samples[0] += m.count[0]
	if end != walk.EndComplete {
		m.Samples[m.place[0]] += m.count[0]
	}
}

func (m *merger) add(tally int, id, n uint32) {
	if m.tallies[tally] == nil {
		m.tallies[tally] = make([]uint32, m.Nodes.Len())
	}
	m.tallies[tally][id] += n
}

func mergeCells(cells []Cell) []Cell {
	slices.SortFunc(cells, compareCells)
	out := cells[:0]
	for _, c := range cells {
		if k := len(out) - 1; k >= 0 && compareCells(out[k], c) == 0 {
			out[k].Count += c.Count
			out[k].Weight += c.Weight
			continue
		}
		out = append(out, c)
	}
	return out
}

func compareCells(a, b Cell) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Event, b.Event))
}

// EndName returns the text of the frame that stands for the missing outer part.
func EndName(e walk.End) string {
	switch e {
	case walk.EndTruncated:
		return "[truncated: the copy of the stack or the limit on frames ended first]"
	case walk.EndNoRule:
		return "[broken: no rule to find the caller]"
	case walk.EndBadPC:
		return "[broken: a return address that is no code]"
	case walk.EndBadSP:
		return "[broken: the stack pointer left the stack]"
	case walk.EndReadError:
		return "[broken: memory that the walk needed could not be read]"
	case walk.EndUnread:
		return "[broken: the stack could not be copied]"
	case walk.EndChanged:
		return "[broken: the process changed under the walk]"
	case walk.EndUncopied:
		return "[virtual thread's older frames not copied]"
	}
	return "[broken: " + e.String() + "]"
}
