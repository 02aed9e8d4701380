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

// node is a merged frame under its merged caller.
type node struct {
	parent, sym uint32
	samples     uint64 // that passed through it
	derived     uint64 // of these: found by reading code
	heuristic   uint64 // of these: a guess
	stitched    uint64 // of these: read after the sample
	coarse      uint64 // of these: position only known to the next safepoint
	virtual     uint64 // of these: on a virtual thread's own stack
	line        int32  // the line most samples were at, 0 if unknown
	lines       uint32 // how many different lines there are
}

// cell is what ended in one node, in one thread, for one event.
type cell struct {
	node, thread uint32
	event        uint16
	count        uint64 // samples
	weight       uint64 // in the event's unit
}

// tree is a profile as the page needs it: nodes in the order in which a walk
// from the root visits them, heaviest child first, so that a node's subtree
// follows it without a gap.
type tree struct {
	symbols []symbol
	nodes   []node // nodes[0] is the root and has no symbol
	depth   []uint32
	cells   []cell // sorted by node, thread, event
}

// merger builds the tree.
type merger struct {
	p       *profile.Profile
	symbols []symbol
	symbol  map[symbol]uint32
	nodes   []node
	child   *profile.Trie // of symbols; its nodes have the same indices as nodes
	// place[end][i] is the merged node of p.Nodes[i] in stacks that end so,
	// 0 while not known. Stacks that lack their outer part stand under a frame
	// that says so, and never merge with whole ones.
	place [walk.NumEnds][]uint32
	path  []uint32
}

func aggregate(p *profile.Profile) (*tree, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	m := &merger{
		p:      p,
		symbol: make(map[symbol]uint32),
		nodes:  make([]node, 1, len(p.Nodes)+1),
		child:  profile.NewTrie(),
	}
	cells := make([]cell, 0, len(p.Samples))
	var counts [walk.NumEnds][]uint64
	for i := range p.Samples {
		s := &p.Samples[i]
		end := s.End
		at := m.find(end, s.Node)
		if counts[end] == nil {
			counts[end] = make([]uint64, len(p.Nodes))
		}
		counts[end][s.Node]++
		cells = append(cells, cell{node: at, thread: s.Thread, event: s.Event, count: 1, weight: s.Weight})
	}
	m.attribute(counts)
	return m.order(mergeCells(cells)), nil
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

func (m *merger) under(parent uint32, s symbol) uint32 {
	sym := m.sym(s)
	i := m.child.Child(parent, sym)
	if int(i) == len(m.nodes) {
		m.nodes = append(m.nodes, node{parent: parent, sym: sym})
	}
	return i
}

// find gives the merged node for p.Nodes[n] in a stack that ends with end.
func (m *merger) find(end walk.End, n uint32) uint32 {
	place := m.place[end]
	if place == nil {
		place = make([]uint32, len(m.p.Nodes))
		if end != walk.EndComplete {
			place[0] = m.under(0, symbol{fn: noFunc, end: end})
		}
		m.place[end] = place
	}
	path := m.path[:0]
	for n != profile.RootNode && place[n] == 0 {
		path = append(path, n)
		n = m.p.Nodes[n].Parent
	}
	at := place[n]
	for _, n := range slices.Backward(path) {
		f := &m.p.Frames[m.p.Nodes[n].Frame]
		at = m.under(at, symbol{fn: f.Func, kind: f.Kind})
		place[n] = at
	}
	m.path = path
	return at
}

// attribute counts for each merged node how its frames were found, and at which
// line most of them were.
func (m *merger) attribute(counts [walk.NumEnds][]uint64) {
	type at struct {
		node  uint32
		line  int32
		count uint64
	}
	var lines []at
	for end, count := range counts {
		if count == nil {
			continue
		}
		for i := len(count) - 1; i > 0; i-- {
			c := count[i]
			if c == 0 {
				continue
			}
			pn := m.p.Nodes[i]
			count[pn.Parent] += c
			f := &m.p.Frames[pn.Frame]
			id := m.place[end][i]
			n := &m.nodes[id]
			n.samples += c
			switch f.Prov {
			case walk.Exact:
			case walk.Derived:
				n.derived += c
			default:
				n.heuristic += c
			}
			if f.Flags&walk.Stitched != 0 {
				n.stitched += c
			}
			if f.Flags&walk.Coarse != 0 {
				n.coarse += c
			}
			if f.Flags&walk.Virtual != 0 {
				n.virtual += c
			}
			if f.Line > 0 {
				lines = append(lines, at{id, f.Line, c})
			}
		}
		m.nodes[0].samples += count[0]
		if walk.End(end) != walk.EndComplete {
			m.nodes[m.place[end][0]].samples += count[0]
		}
	}
	slices.SortFunc(lines, func(a, b at) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.line, b.line))
	})
	var best uint64
	for i := 0; i < len(lines); {
		l, sum := lines[i], uint64(0)
		n := &m.nodes[l.node]
		if n.lines == 0 {
			best = 0
		}
		for ; i < len(lines) && lines[i].node == l.node && lines[i].line == l.line; i++ {
			sum += lines[i].count
		}
		n.lines++
		if sum > best {
			best, n.line = sum, l.line
		}
	}
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

// order renumbers the nodes so that each is followed by its subtree.
func (m *merger) order(cells []cell) *tree {
	n := len(m.nodes)
	ids := make([]uint32, n-1)
	for i := range ids {
		ids[i] = uint32(i + 1)
	}
	slices.SortFunc(ids, func(a, b uint32) int {
		x, y := &m.nodes[a], &m.nodes[b]
		return cmp.Or(cmp.Compare(x.parent, y.parent), cmp.Compare(y.samples, x.samples), m.compareSymbols(x.sym, y.sym))
	})
	first := make([]uint32, n+1) // children of i are ids[first[i]:first[i+1]]
	for _, id := range ids {
		first[m.nodes[id].parent+1]++
	}
	for i := 1; i <= n; i++ {
		first[i] += first[i-1]
	}

	t := &tree{symbols: m.symbols, nodes: make([]node, 0, n), depth: make([]uint32, 0, n), cells: cells}
	index := make([]uint32, n)
	type visit struct{ id, depth uint32 }
	stack := []visit{{0, 0}}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		index[v.id] = uint32(len(t.nodes))
		nd := m.nodes[v.id]
		nd.parent = index[nd.parent]
		t.nodes = append(t.nodes, nd)
		t.depth = append(t.depth, v.depth)
		for _, c := range slices.Backward(ids[first[v.id]:first[v.id+1]]) {
			stack = append(stack, visit{c, v.depth + 1})
		}
	}
	for i := range cells {
		cells[i].node = index[cells[i].node]
	}
	slices.SortFunc(cells, compareCells)
	return t
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
