package html

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// A symbol is what a frame of the graph is: a function, in one kind of code.
// The same method interpreted and compiled is two symbols.
type symbol struct {
	fn   uint32 // index into Funcs, or noFunc with end set
	kind walk.Kind
	end  walk.End // for the frames that stand for a missing outer part
}

const noFunc = ^uint32(0)

// What of a node's samples is counted by itself.
const (
	derived   = iota // found by reading code
	heuristic        // a guess
	stitched         // read after the sample
	coarse           // position only known to the next safepoint
	virtual          // on a virtual thread's own stack
	numTallies
)

// cell is what ended in one node, in one thread, for one event.
type cell struct {
	node, thread uint32
	count        uint32 // samples
	event        uint16
	weight       uint64 // in the event's unit
}

// tree is a profile as the page needs it: nodes in the order in which a walk
// from the root visits them, heaviest child first, so that a node's subtree
// follows it without a gap. A recording of a large program has millions of
// nodes, so what is known of them is in columns, and those that are not needed
// are not there.
type tree struct {
	symbols []symbol
	nodes   *profile.Trie // of symbols; node 0 is the root and has no symbol
	order   []uint32      // by place on the page: index into nodes
	depth   []uint32      // by place
	cells   []cell        // sorted by the node's place, thread, event

	// By index into nodes.
	samples []uint32             // that passed through it
	tallies [numTallies][]uint32 // of these; nil if all are 0
	line    []int32              // the line most samples were at, 0 if unknown
	lines   []uint32             // how many different lines there are
}

// tally is how many of a node's samples are of one sort.
func (t *tree) tally(sort int, node uint32) uint64 {
	if c := t.tallies[sort]; int(node) < len(c) {
		return uint64(c[node])
	}
	return 0
}

// merger builds the tree.
type merger struct {
	tree
	p      *profile.Profile
	symbol map[symbol]uint32
	path   []uint32

	// Of the stacks that end in one way. Those that lack their outer part stand
	// under a frame that says so, and never merge with whole ones.
	place []uint32 // by index into p.Nodes: the merged node, 0 while not known
	count []uint32 // by index into p.Nodes: samples that passed through it
	group []uint32 // indices into p.Nodes, by merged node
	first []uint32 // where a merged node's begin there
}

func aggregate(p *profile.Profile) (*tree, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	m := &merger{p: p, symbol: make(map[symbol]uint32), tree: tree{nodes: profile.NewTrie()}}
	m.cells = make([]cell, 0, len(p.Samples))
	var ends [walk.NumEnds]bool
	for i := range p.Samples {
		ends[p.Samples[i].End] = true
	}
	// The whole stacks come last: there are most of them, and counting them no
	// longer needs what finds nodes.
	for end := walk.NumEnds - 1; end > walk.EndComplete; end-- {
		if ends[end] {
			m.merge(end)
			m.attribute(end)
		}
	}
	m.merge(walk.EndComplete)
	m.nodes.Seal()
	m.attribute(walk.EndComplete)
	m.cells = mergeCells(m.cells)
	m.sort()
	t := m.tree // without what only merging needs
	return &t, nil
}

func (m *merger) sym(s symbol) uint32 {
	i, ok := m.symbol[s]
	if !ok {
		i = uint32(len(m.symbols))
		m.symbols = append(m.symbols, s)
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
		m.place[0] = m.nodes.Child(0, m.sym(symbol{fn: noFunc, end: end}))
	}
	for i := range m.p.Samples {
		s := &m.p.Samples[i]
		if s.End != end {
			continue
		}
		m.count[s.Node]++
		m.cells = append(m.cells, cell{node: m.find(s.Node), thread: s.Thread, event: s.Event, count: 1, weight: s.Weight})
	}
}

// find gives the merged node for p.Nodes[n].
func (m *merger) find(n uint32) uint32 {
	path := m.path[:0]
	for n != profile.RootNode && m.place[n] == 0 {
		path = append(path, n)
		n = m.p.Nodes[n].Parent
	}
	at := m.place[n]
	for _, n := range slices.Backward(path) {
		f := &m.p.Frames[m.p.Nodes[n].Frame]
		at = m.nodes.Child(at, m.sym(symbol{fn: f.Func, kind: f.Kind}))
		m.place[n] = at
	}
	m.path = path
	return at
}

// resize makes the columns as long as there are nodes.
func (m *merger) resize() {
	n := m.nodes.Len()
	m.samples = grown(m.samples, n)
	m.line = grown(m.line, n)
	m.lines = grown(m.lines, n)
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

// attribute counts for each merged node how its frames were found, and at which
// line most of them were.
func (m *merger) attribute(end walk.End) {
	m.resize()
	for i := len(m.count) - 1; i > 0; i-- {
		c := m.count[i]
		if c == 0 {
			continue
		}
		pn := m.p.Nodes[i]
		m.count[pn.Parent] += c
		f := &m.p.Frames[pn.Frame]
		id := m.place[i]
		m.samples[id] += c
		switch f.Prov {
		case walk.Exact:
		case walk.Derived:
			m.add(derived, id, c)
		default:
			m.add(heuristic, id, c)
		}
		if f.Flags&walk.Stitched != 0 {
			m.add(stitched, id, c)
		}
		if f.Flags&walk.Coarse != 0 {
			m.add(coarse, id, c)
		}
		if f.Flags&walk.Virtual != 0 {
			m.add(virtual, id, c)
		}
	}
	m.samples[0] += m.count[0]
	if end != walk.EndComplete {
		m.samples[m.place[0]] += m.count[0]
	}
	m.findLines()
}

func (m *merger) add(tally int, id, n uint32) {
	if m.tallies[tally] == nil {
		m.tallies[tally] = make([]uint32, m.nodes.Len())
	}
	m.tallies[tally][id] += n
}

// findLines finds the line of each merged node that has counts now. All stacks
// that reach a merged node end in the same way.
func (m *merger) findLines() {
	m.group, m.first = groupBy(m.group, m.first, len(m.p.Nodes), m.nodes.Len(), func(i uint32) (uint32, bool) {
		return m.place[i], i > 0 && m.count[i] > 0 && m.p.Frames[m.p.Nodes[i].Frame].Line > 0
	})
	type at struct {
		line  int32
		count uint64
	}
	var lines []at
	for id := range m.first[:m.nodes.Len()] {
		lines = lines[:0]
		for _, i := range m.group[m.first[id]:m.first[id+1]] {
			lines = append(lines, at{m.p.Frames[m.p.Nodes[i].Frame].Line, uint64(m.count[i])})
		}
		if len(lines) > 1 {
			slices.SortFunc(lines, func(a, b at) int { return cmp.Compare(a.line, b.line) })
		}
		var best uint64
		for i := 0; i < len(lines); {
			line, sum := lines[i].line, uint64(0)
			for ; i < len(lines) && lines[i].line == line; i++ {
				sum += lines[i].count
			}
			m.lines[id]++
			if sum > best {
				best, m.line[id] = sum, line
			}
		}
	}
}

// groupBy sorts the numbers below n by what of gives for them, below groups,
// and leaves out those of which it says so. Group g is list[first[g]:first[g+1]],
// in the order of the numbers. The slices are reused.
func groupBy(list, first []uint32, n, groups int, of func(uint32) (group uint32, ok bool)) (_, _ []uint32) {
	first = append(first[:0], make([]uint32, groups+1)...)
	for i := range uint32(n) {
		if g, ok := of(i); ok {
			first[g+1]++
		}
	}
	for g := range groups {
		first[g+1] += first[g]
	}
	if need := int(first[groups]); cap(list) < need {
		list = make([]uint32, need)
	} else {
		list = list[:need]
	}
	// Filling moves first[g+1] from where group g begins to where it ends.
	for g := groups; g > 0; g-- {
		first[g] = first[g-1]
	}
	for i := range uint32(n) {
		if g, ok := of(i); ok {
			list[first[g+1]] = i
			first[g+1]++
		}
	}
	return list, first
}

func mergeCells(cells []cell) []cell {
	slices.SortFunc(cells, compareCells)
	out := cells[:0]
	for _, c := range cells {
		if k := len(out) - 1; k >= 0 && compareCells(out[k], c) == 0 {
			out[k].count += c.count
			out[k].weight += c.weight
			continue
		}
		out = append(out, c)
	}
	return out
}

func compareCells(a, b cell) int {
	return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.thread, b.thread), cmp.Compare(a.event, b.event))
}

// sort finds the order in which each node is followed by its subtree.
func (m *merger) sort() {
	n := m.nodes.Len()
	children, first := groupBy(m.group, m.first, n, n, func(i uint32) (uint32, bool) {
		return m.nodes.At(i).Parent, i > 0
	})
	heavier := func(a, b uint32) int {
		return cmp.Or(cmp.Compare(m.samples[b], m.samples[a]), m.compareSymbols(m.nodes.At(a).Frame, m.nodes.At(b).Frame))
	}
	for i := range n {
		if of := children[first[i]:first[i+1]]; len(of) > 1 {
			slices.SortFunc(of, heavier)
		}
	}
	// What merging needed is not needed any more.
	m.order, m.depth = make([]uint32, 0, n), slices.Grow(m.count[:0], n)
	place := grown(m.place, n)
	type visit struct{ id, depth uint32 }
	stack := []visit{{0, 0}}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		place[v.id] = uint32(len(m.order))
		m.order = append(m.order, v.id)
		m.depth = append(m.depth, v.depth)
		for _, c := range slices.Backward(children[first[v.id]:first[v.id+1]]) {
			stack = append(stack, visit{c, v.depth + 1})
		}
	}
	for i := range m.cells {
		m.cells[i].node = place[m.cells[i].node]
	}
	slices.SortFunc(m.cells, compareCells)
}

func (m *merger) compareSymbols(a, b uint32) int {
	x, y := m.symbols[a], m.symbols[b]
	if x.fn == noFunc || y.fn == noFunc || x.fn == y.fn {
		return cmp.Or(cmp.Compare(x.fn, y.fn), cmp.Compare(x.end, y.end), cmp.Compare(x.kind, y.kind))
	}
	return cmp.Or(cmp.Compare(m.p.Funcs[x.fn].Name, m.p.Funcs[y.fn].Name), cmp.Compare(x.fn, y.fn))
}

// endName is what the frame says that stands where the outer part is missing.
func endName(e walk.End) string {
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
	}
	return "[broken: unknown reason]"
}
