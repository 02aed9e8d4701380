package report

import (
	"slices"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/profile"
)

// leastStart is the least number of frames of a thread's start that are shown as one line.
const leastStart = 3

// starting reports for each node of a tree whether it belongs to a thread's start, which requires
// that all above it do, or in a tree of callers all below it. Without names, what a VM's own
// threads do looks like their start: then only what leads to Java code belongs to it.
func (tp *treePrinter) starting() []bool {
	yes := make([]bool, len(tp.t.Nodes))
	for i := len(yes) - 1; i > 0; i-- { // children come after their parents
		n := &tp.t.Nodes[i]
		f := tp.s.Func(n.Method)
		is, named := attribution.Starts(n.Kind, f.Name, f.Module)
		any, all := false, true
		for _, c := range n.Children {
			any, all = any || yes[c], all && yes[c]
		}
		if tp.arrow == "" {
			yes[i] = is && (named || any)
		} else {
			yes[i] = is && all
		}
	}
	return yes
}

// foldStart merges the nodes at the root of a call tree that start threads into one; what they call
// is below it. The tree is a copy.
func (tp *treePrinter) foldStart() {
	yes := tp.starting()
	root := tp.t.Nodes[profile.RootNode]
	nodes := slices.Clone(tp.t.Nodes)
	var fold profile.TreeNode
	var first uint32
	var left []uint32
	count := 0
	todo := slices.Clone(root.Children)
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := &tp.t.Nodes[at]
		switch {
		case yes[at]:
			if n.Parent == profile.RootNode {
				fold.Total.Add(n.Total)
				first = at
			}
			count++
			fold.Self.Add(n.Self)
			todo = append(todo, n.Children...)
		case n.Parent == profile.RootNode:
			left = append(left, at)
		default:
			fold.Children = append(fold.Children, at)
		}
	}
	if count < leastStart {
		return
	}
	left = append(left, first)
	nodes[first] = fold
	nodes[profile.RootNode].Children = left
	tp.t = &profile.Tree{Nodes: nodes}
	tp.t.Order(left)
	tp.t.Order(fold.Children)
	tp.folds = map[uint32]int{first: count}
}

// foldEnds finds what ends with only a thread's start in a tree of callers.
func (tp *treePrinter) foldEnds() {
	yes := tp.starting()
	sizes := make([]int, len(yes))
	tp.folds = map[uint32]int{}
	for i := len(yes) - 1; i > 0; i-- {
		n := &tp.t.Nodes[i]
		sizes[i]++
		if yes[i] {
			sizes[n.Parent] += sizes[i]
		}
		if yes[i] && !yes[n.Parent] && n.Parent != profile.RootNode && sizes[i] >= leastStart {
			tp.folds[uint32(i)] = sizes[i]
		}
	}
}

// fold merges the frames by which threads start into one line each.
func (tp *treePrinter) fold() {
	if tp.arrow == "" {
		tp.foldStart()
	} else {
		tp.foldEnds()
	}
}
