package flame

import (
	"cmp"
	"slices"
)

// sortBesideLines calls sort while the remaining lines are found.
func (m *merger) sortBesideLines() []uint32 {
	found := make(chan struct{})
	go func() {
		defer close(found)
		m.findLines()
	}()
	place := m.sort()
	<-found
	return place
}

// sort computes the order in which each node is followed by its subtree. It returns for each node
// its place in that order.
func (m *merger) sort() []uint32 {
	n := m.Nodes.Len()
	up := make([]uint32, n)
	var beside []uint64 // parents and their children that do not follow them
	for i := 1; i < n; i++ {
		up[i] = m.Nodes.At(uint32(i)).Parent
		if int(up[i]) != i-1 {
			beside = append(beside, uint64(up[i])<<32|uint64(i))
		}
	}
	slices.Sort(beside)
	size, place := make([]uint32, n), make([]uint32, n)
	for i := range size {
		size[i], place[i] = 1, 1
	}
	for i := n - 1; i > 0; i-- {
		size[up[i]] += size[i]
	}
	// The order of siblings, and so how far a node lies behind its parent.
	heavier := func(a, b uint32) int {
		return cmp.Or(cmp.Compare(m.Samples[b], m.Samples[a]), m.compareSymbols(m.Nodes.At(a).Frame, m.Nodes.At(b).Frame))
	}
	var children []uint32
	for len(beside) > 0 {
		parent := uint32(beside[0] >> 32)
		children = children[:0]
		if next := parent + 1; up[next] == parent {
			children = append(children, next)
		}
		for len(beside) > 0 && uint32(beside[0]>>32) == parent {
			children, beside = append(children, uint32(beside[0])), beside[1:]
		}
		slices.SortFunc(children, heavier)
		at := uint32(1)
		for _, c := range children {
			place[c] = at
			at += size[c]
		}
	}
	m.Order, m.Depth = make([]uint32, n), size
	place[0], m.Depth[0] = 0, 0
	for i := 1; i < n; i++ {
		place[i] += place[up[i]]
		m.Order[place[i]] = uint32(i)
		m.Depth[place[i]] = m.Depth[place[up[i]]] + 1
	}
	return place
}

func (m *merger) compareSymbols(a, b uint32) int {
	x, y := m.Symbols[a], m.Symbols[b]
	if x.Func == NoFunc || y.Func == NoFunc || x.Func == y.Func {
		if x.Func == y.Func && x.Kind == y.Kind && x.Skid != y.Skid {
			if x.Skid {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(x.Func, y.Func), cmp.Compare(x.End, y.End), cmp.Compare(x.Kind, y.Kind))
	}
	return cmp.Or(cmp.Compare(m.p.Funcs[x.Func].Name, m.p.Funcs[y.Func].Name), cmp.Compare(x.Func, y.Func))
}
