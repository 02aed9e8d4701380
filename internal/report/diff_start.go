package report

import (
	"math"
	"slices"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// starting reports for each node of a tree of two recordings whether it belongs to a thread's
// start, by the rule of treePrinter.starting.
func (pg *diffPage) starting(nodes []diff.Node, callers bool) []bool {
	kinds := make([]walk.Kind, len(pg.c.Funcs)) // in a comparison, a function has one kind
	for i := range pg.c.Pair.Frames {
		f := &pg.c.Pair.Frames[i]
		kinds[f.Func] = f.Kind
	}
	yes := make([]bool, len(nodes))
	for i := len(yes) - 1; i > 0; i-- { // children come after their parents
		n := &nodes[i]
		f := &pg.c.Funcs[n.Func]
		is, named := attribution.Starts(kinds[n.Func], f.Name, f.Module)
		any, all := false, true
		for _, child := range n.Children {
			any, all = any || yes[child], all && yes[child]
		}
		if callers {
			yes[i] = is && all
		} else {
			yes[i] = is && (named || any)
		}
	}
	return yes
}

// foldStart merges the nodes at the root of a call tree that start threads into one; what they call
// is below it. It returns a copy of the tree, and how many frames a node stands for; the tree
// itself if there is nothing to fold.
func (pg *diffPage) foldStart(nodes []diff.Node) ([]diff.Node, map[uint32]int) {
	yes := pg.starting(nodes, false)
	out := slices.Clone(nodes)
	var fold diff.Node
	var first uint32
	var left []uint32
	count := 0
	add := func(to *diff.Counts, n diff.Counts) {
		for side := range to {
			to[side].Add(n[side])
		}
	}
	todo := slices.Clone(nodes[profile.RootNode].Children)
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := &nodes[at]
		switch {
		case yes[at]:
			if n.Parent == profile.RootNode {
				add(&fold.Total, n.Total)
				first = at
			}
			count++
			add(&fold.Self, n.Self)
			todo = append(todo, n.Children...)
		case n.Parent == profile.RootNode:
			left = append(left, at)
		default:
			fold.Children = append(fold.Children, at)
		}
	}
	if count < leastStart {
		return nodes, nil
	}
	fold.Most = max(math.Abs(pg.c.Change(fold.Total)), math.Abs(pg.c.Change(fold.Self)))
	for _, child := range fold.Children {
		fold.Most = max(fold.Most, nodes[child].Most)
		out[child].Parent = first
	}
	left = append(left, first)
	fold.Func = nodes[first].Func
	out[first] = fold
	out[profile.RootNode].Children = left
	pg.c.Order(out, left)
	pg.c.Order(out, fold.Children)
	return out, map[uint32]int{first: count}
}

// foldEnds finds what ends with only a thread's start in a tree of callers, and returns a copy of
// the tree without what lies below.
func (pg *diffPage) foldEnds(nodes []diff.Node) ([]diff.Node, map[uint32]int) {
	yes := pg.starting(nodes, true)
	out := slices.Clone(nodes)
	sizes := make([]int, len(yes))
	folds := map[uint32]int{}
	for i := len(yes) - 1; i > 0; i-- {
		n := &nodes[i]
		sizes[i]++
		if !yes[i] {
			continue
		}
		sizes[n.Parent] += sizes[i]
		if !yes[n.Parent] && n.Parent != profile.RootNode && sizes[i] >= leastStart {
			folds[uint32(i)] = sizes[i]
			out[i].Children = nil
		}
	}
	return out, folds
}
