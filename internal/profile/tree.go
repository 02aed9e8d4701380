package profile

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/walk"
)

// Tree is a tree of methods: those that call below each other, from the
// thread's first frame on (Calls), or the callers of a method below it (Callers).
type Tree struct {
	Nodes []TreeNode // Nodes[0] is the root; a parent comes before its children
}

// TreeNode is a method with a way to it.
type TreeNode struct {
	Parent uint32 // index into Nodes
	Method uint32 // index into Selection.Methods; meaningless for the root
	Kind   walk.Kind
	Self   Count // stacks that end here
	Total  Count // those and the ones below
	// Children are the indices of the nodes below, the heaviest first.
	Children []uint32
}

// Calls is the call tree from the outside in. What differs only in lines or
// kinds is merged; a node's kind is that of most of its weight.
func (s *Selection) Calls() *Tree {
	trie, of := s.project()
	t := &Tree{Nodes: make([]TreeNode, trie.Len())}
	for i := range t.Nodes {
		n := trie.At(uint32(i))
		t.Nodes[i] = TreeNode{Parent: n.Parent, Method: n.Frame}
	}
	for i, c := range s.leaves {
		t.Nodes[of[i]].Self.Add(c)
	}
	t.sum()
	s.kinds(t, of)
	t.link()
	return t
}

// project merges the profile's nodes by method, without the hidden kinds.
func (s *Selection) project() (trie *Trie, of []uint32) {
	p := s.Profile
	totals := s.totals()
	trie, of = NewTrie(), make([]uint32, len(p.Nodes))
	for i := 1; i < len(p.Nodes); i++ {
		n := p.Nodes[i]
		f := &p.Frames[n.Frame]
		switch {
		case totals[i].Samples == 0: // nothing chosen below
		case s.Filter.Hide.Has(f.Kind):
			of[i] = of[n.Parent]
		default:
			of[i] = trie.Child(of[n.Parent], s.methodOf[f.Func])
		}
	}
	return trie, of
}

// totals gives for every node of the profile what was chosen at and below it.
func (s *Selection) totals() []Count {
	totals := slices.Clone(s.leaves)
	for i := len(totals) - 1; i > 0; i-- {
		totals[s.Profile.Nodes[i].Parent].Add(totals[i])
	}
	return totals
}

// kinds gives each node of t the kind of most of what is merged in it.
func (s *Selection) kinds(t *Tree, of []uint32) {
	totals := s.totals()
	most := make([]uint64, len(t.Nodes))
	for i, c := range totals {
		n := of[i]
		f := &s.Profile.Frames
		if n == RootNode || c.Samples <= most[n] {
			continue
		}
		if k := (*f)[s.Profile.Nodes[i].Frame].Kind; !s.Filter.Hide.Has(k) {
			most[n] = c.Samples
			t.Nodes[n].Kind = k
		}
	}
}

// sum makes the totals from what each node has itself.
func (t *Tree) sum() {
	for i := range t.Nodes {
		t.Nodes[i].Total = t.Nodes[i].Self
	}
	for i := len(t.Nodes) - 1; i > 0; i-- {
		t.Nodes[t.Nodes[i].Parent].Total.Add(t.Nodes[i].Total)
	}
}

// link makes the lists of children.
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
		slices.SortFunc(t.Nodes[i].Children, func(a, b uint32) int { return t.heavier(a, b) })
	}
}

// heavier orders nodes by total, then by when they first occurred.
func (t *Tree) heavier(a, b uint32) int {
	x, y := t.Nodes[a].Total, t.Nodes[b].Total
	return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(y.Samples, x.Samples), cmp.Compare(a, b))
}

// Path gives the methods from the root to node i, the outermost first, appended
// to out.
func (t *Tree) Path(i uint32, out []uint32) []uint32 {
	from := len(out)
	for ; i != RootNode; i = t.Nodes[i].Parent {
		out = append(out, t.Nodes[i].Method)
	}
	slices.Reverse(out[from:])
	return out
}

// Hottest gives the nodes with most self weight, at most n.
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
