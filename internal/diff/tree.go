package diff

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// Calls returns the call tree of both, from the outside in; node 0 is the root.
func (c *Comparison) Calls() []Node {
	nodes := make([]Node, c.trie.Len())
	for i := range nodes {
		at := c.trie.At(uint32(i))
		nodes[i] = Node{Parent: at.Parent, Func: at.Frame, Self: c.leaves[i]}
	}
	return c.finish(nodes)
}

// Callers returns the tree of the callers of all functions whose name matches: those below the
// root, and below each node its callers. A stack counts once, for the innermost such function on
// it.
func (c *Comparison) Callers(re *regexp.Regexp) []Node {
	match := make([]bool, len(c.Funcs))
	for i := range match {
		match[i] = re.MatchString(c.Funcs[i].Name)
	}
	// By node of the call tree: the innermost match on the path to it, and the counts of stacks
	// that have their innermost match here.
	nearest := make([]uint32, c.trie.Len())
	counts := make([]Counts, c.trie.Len())
	for i := uint32(1); int(i) < len(nearest); i++ {
		at := c.trie.At(i)
		nearest[i] = nearest[at.Parent]
		if match[at.Frame] {
			nearest[i] = i
		}
		counts[nearest[i]].add(c.leaves[i])
	}
	trie := profile.NewTrie()
	nodes := make([]Node, 1)
	for i := uint32(1); int(i) < len(nearest); i++ {
		if nearest[i] != i || counts[i][0].Samples+counts[i][1].Samples == 0 {
			continue
		}
		at := uint32(profile.RootNode)
		for n := i; n != profile.RootNode; n = c.trie.At(n).Parent {
			parent, fn := at, c.trie.At(n).Frame
			at = trie.Child(parent, fn)
			if int(at) == len(nodes) {
				nodes = append(nodes, Node{Parent: parent, Func: fn})
			}
		}
		nodes[at].Self.add(counts[i])
	}
	return c.finish(nodes)
}

// finish computes totals from what each node has itself, and the lists of children.
func (c *Comparison) finish(nodes []Node) []Node {
	for i := range nodes {
		nodes[i].Total = nodes[i].Self
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		n := &nodes[i]
		n.Most = max(n.Most, math.Abs(c.Change(n.Total)), math.Abs(c.Change(n.Self)))
		if i > 0 {
			parent := &nodes[n.Parent]
			parent.Total.add(n.Total)
			parent.Most = max(parent.Most, n.Most)
		}
	}
	for i := 1; i < len(nodes); i++ {
		parent := &nodes[nodes[i].Parent]
		parent.Children = append(parent.Children, uint32(i))
	}
	for i := range nodes {
		c.Order(nodes, nodes[i].Children)
	}
	return nodes
}

// Order sorts some of a tree's nodes: those that changed most first, then by value, then by name.
func (c *Comparison) Order(nodes []Node, list []uint32) {
	slices.SortFunc(list, func(a, b uint32) int {
		x, y := &nodes[a], &nodes[b]
		return cmp.Or(cmp.Compare(y.Most, x.Most), cmp.Compare(c.Value(1, y.Total[1]), c.Value(1, x.Total[1])),
			cmp.Compare(c.Value(0, y.Total[0]), c.Value(0, x.Total[0])),
			strings.Compare(c.Funcs[x.Func].Name, c.Funcs[y.Func].Name), cmp.Compare(a, b))
	})
}
