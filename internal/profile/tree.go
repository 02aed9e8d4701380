package profile

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/walk"
)

// Tree is a tree of methods: calls from the thread's first frame on (Calls), or a method's callers
// below it (Callers).
type Tree struct {
	Nodes []TreeNode // Nodes[0] is the root; a parent comes before its children
}

// TreeNode is a method on one path.
type TreeNode struct {
	Parent uint32 // index into Nodes
	Method uint32 // index into Selection.Methods; meaningless for the root
	Kind   walk.Kind
	Self   Count // stacks that end here
	Total  Count // those and the ones below
	// Children are the indices of the child nodes, the heaviest first.
	Children []uint32
}

// Calls returns the call tree from the outside in. Frames that differ only in kind are merged; a
// node's kind is that of most of its samples.
func (s *Selection) Calls() *Tree {
	stacks := s.stacks()
	totals := stacks.totals()
	trie := NewTrie()
	of := make([]uint32, len(totals))
	t := &Tree{Nodes: make([]TreeNode, 1)}
	most := make([]uint64, 1)
	for i := 1; i < len(totals); i++ {
		if totals[i].Samples == 0 { // nothing was chosen below
			continue
		}
		f, parent := stacks.face(uint32(i)), of[stacks.At(uint32(i)).Parent]
		at := trie.Child(parent, f.method)
		if int(at) == len(t.Nodes) {
			t.Nodes = append(t.Nodes, TreeNode{Parent: parent, Method: f.method})
			most = append(most, 0)
		}
		of[i] = at
		t.Nodes[at].Self.Add(stacks.leaves[i])
		if totals[i].Samples > most[at] {
			most[at] = totals[i].Samples
			t.Nodes[at].Kind = f.kind
		}
	}
	t.Nodes[RootNode].Self = stacks.leaves[RootNode]
	t.sum()
	t.link()
	return t
}

// totals returns for every node of stacks the sum of what was chosen at and below it.
func (t *stacks) totals() []Count {
	totals := slices.Clone(t.leaves)
	for i := len(totals) - 1; i > 0; i-- {
		totals[t.At(uint32(i)).Parent].Add(totals[i])
	}
	return totals
}

// sum computes the totals from what each node has itself.
func (t *Tree) sum() {
	for i := range t.Nodes {
		t.Nodes[i].Total = t.Nodes[i].Self
	}
	for i := len(t.Nodes) - 1; i > 0; i-- {
		t.Nodes[t.Nodes[i].Parent].Total.Add(t.Nodes[i].Total)
	}
}

// link builds the lists of children.
func (t *Tree) link() {
	counts := make([]uint32, len(t.Nodes))
	for _, n := range t.Nodes[1:] {
		counts[n.Parent]++
	}
	all := make([]uint32, len(t.Nodes))
	for i := range t.Nodes {
		n := counts[i]
		t.Nodes[i].Children, all = all[:0:n], all[n:]
	}
	for i := 1; i < len(t.Nodes); i++ {
		parent := &t.Nodes[t.Nodes[i].Parent]
		parent.Children = append(parent.Children, uint32(i))
	}
	for i := range t.Nodes {
		t.Order(t.Nodes[i].Children)
	}
}

// Order sorts nodes by their weight, the heaviest first.
func (t *Tree) Order(nodes []uint32) {
	slices.SortFunc(nodes, func(a, b uint32) int { return t.heavier(a, b) })
}

// heavier orders nodes by total, then by when they first occurred.
func (t *Tree) heavier(a, b uint32) int {
	x, y := t.Nodes[a].Total, t.Nodes[b].Total
	return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(y.Samples, x.Samples), cmp.Compare(a, b))
}

// Path appends the methods from the root to node i, the outermost first, to out.
func (t *Tree) Path(i uint32, out []uint32) []uint32 {
	from := len(out)
	for ; i != RootNode; i = t.Nodes[i].Parent {
		out = append(out, t.Nodes[i].Method)
	}
	slices.Reverse(out[from:])
	return out
}

// Hottest returns the nodes with most self weight, at most n.
func (t *Tree) Hottest(n int) []uint32 {
	var nodes []uint32
	for i := range t.Nodes {
		if i > 0 && t.Nodes[i].Self.Samples > 0 {
			nodes = append(nodes, uint32(i))
		}
	}
	slices.SortFunc(nodes, func(a, b uint32) int {
		x, y := t.Nodes[a].Self, t.Nodes[b].Self
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(y.Samples, x.Samples), cmp.Compare(a, b))
	})
	return nodes[:min(n, len(nodes))]
}
