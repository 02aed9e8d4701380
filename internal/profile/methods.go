package profile

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/candid-profiler/candid/internal/walk"
)

// MethodCount is a row of the method list.
type MethodCount struct {
	Method uint32 // index into Selection.Methods
	// Self is of stacks in which the method is innermost, Total of all stacks
	// with it, counted once however often it is on them.
	Self, Total Count
	// Kinds are the samples by the kind of frame that the method's innermost
	// occurrence was.
	Kinds [walk.NumKinds]uint64
	// Guessed are the samples whose innermost occurrence of the method is a
	// frame that was guessed.
	Guessed uint64
	// Coarse are the samples with the method innermost whose place inside
	// inlined code is only known up to the next safepoint or call.
	Coarse uint64
}

// Kind is the kind that the method had most.
func (m *MethodCount) Kind() walk.Kind {
	best := walk.Kind(0)
	for k := range walk.NumKinds {
		if m.Kinds[k] > m.Kinds[best] {
			best = k
		}
	}
	return best
}

// List is the method list: the most self weight first, then total, then name.
func (s *Selection) List() []MethodCount {
	rows := make([]MethodCount, len(s.Methods))
	for i := range rows {
		rows[i].Method = uint32(i)
	}
	totals := s.totals()
	// A depth-first walk over the trie knows what is on the stack at every node.
	// A method's total counts where it is outermost, its kinds where innermost:
	// there, what is below without it again.
	type open struct {
		node  uint32
		inner Count // of what has the method again further in
	}
	first, next := s.children(totals)
	depth := make([]uint32, len(s.Methods)) // occurrences on the current path
	last := make([]uint32, len(s.Methods))  // by method: position in path of the innermost occurrence
	var path []open
	var before []uint32 // by position in path: the method's previous innermost occurrence
	enter := func(node uint32) {
		m := s.face(node).method
		path = append(path, open{node: node})
		if depth[m] == 0 {
			rows[m].Total.Add(totals[node])
		} else {
			path[last[m]].inner.Add(totals[node])
		}
		before = append(before, last[m])
		last[m] = uint32(len(path) - 1)
		depth[m]++
	}
	leave := func() {
		at := len(path) - 1
		o := path[at]
		f := s.face(o.node)
		n := totals[o.node].Samples - o.inner.Samples
		rows[f.method].Kinds[f.kind] += n
		if f.guessed {
			rows[f.method].Guessed += n
		}
		depth[f.method]--
		last[f.method] = before[at]
		path, before = path[:at], before[:at]
	}
	for node := first[RootNode]; node != 0 || len(path) > 0; {
		if node == 0 {
			node = next[path[len(path)-1].node]
			leave()
			continue
		}
		enter(node)
		node = first[node]
	}
	for i := 1; i < len(s.leaves); i++ {
		c := s.leaves[i]
		if c.Samples == 0 {
			continue
		}
		f := s.face(uint32(i))
		rows[f.method].Self.Add(c)
		if f.coarse {
			rows[f.method].Coarse += c.Samples
		}
	}
	rows = slices.DeleteFunc(rows, func(m MethodCount) bool { return m.Total.Samples == 0 })
	slices.SortFunc(rows, func(a, b MethodCount) int {
		x, y := s.Func(a.Method), s.Func(b.Method)
		return cmp.Or(cmp.Compare(b.Self.Weight, a.Self.Weight), cmp.Compare(b.Self.Samples, a.Self.Samples),
			cmp.Compare(b.Total.Weight, a.Total.Weight), cmp.Compare(b.Total.Samples, a.Total.Samples),
			cmp.Compare(x.Name, y.Name), cmp.Compare(x.Module, y.Module), cmp.Compare(a.Method, b.Method))
	})
	return rows
}

// children gives the first child and next sibling of each node of stacks, 0 for
// none, without nodes that count nothing.
func (s *Selection) children(totals []Count) (first, next []uint32) {
	first, next = make([]uint32, len(totals)), make([]uint32, len(totals))
	for i := len(totals) - 1; i > 0; i-- {
		if totals[i].Samples == 0 {
			continue
		}
		parent := s.stacks.At(uint32(i)).Parent
		next[i] = first[parent]
		first[parent] = uint32(i)
	}
	return first, next
}

// Callers is the tree of the callers of all methods whose name matches: those
// methods below the root, and below each node who called it. A stack counts once,
// for the innermost such method on it.
func (s *Selection) Callers(re *regexp.Regexp) *Tree {
	calls := s.Calls()
	match := make([]bool, len(s.Methods))
	for i := range match {
		match[i] = re.MatchString(s.Func(uint32(i)).Name)
	}
	// By node of the call tree: the innermost match on the way to it, and what
	// has its innermost match here.
	nearest := make([]uint32, len(calls.Nodes))
	counts := make([]Count, len(calls.Nodes))
	for i := 1; i < len(calls.Nodes); i++ {
		n := &calls.Nodes[i]
		nearest[i] = nearest[n.Parent]
		if match[n.Method] {
			nearest[i] = uint32(i)
		}
		counts[nearest[i]].Add(n.Self)
	}
	trie := NewTrie()
	t := &Tree{Nodes: make([]TreeNode, 1)}
	for i := 1; i < len(calls.Nodes); i++ {
		if counts[i].Samples == 0 || nearest[i] != uint32(i) {
			continue
		}
		at := uint32(RootNode)
		for n := uint32(i); n != RootNode; n = calls.Nodes[n].Parent {
			from := &calls.Nodes[n]
			parent := at
			at = trie.Child(parent, from.Method)
			if int(at) == len(t.Nodes) {
				t.Nodes = append(t.Nodes, TreeNode{Parent: parent, Method: from.Method, Kind: from.Kind})
			}
		}
		t.Nodes[at].Self.Add(counts[i])
	}
	t.sum()
	t.link()
	return t
}
