package pgo

import (
	"cmp"
	"slices"
)

// target is a callee with its count.
type target struct {
	name  string
	count uint64
}

// sortedTargets returns the callees of a place, the most frequent first.
func (b *body) sortedTargets() []target {
	out := make([]target, 0, len(b.targets))
	for name, n := range b.targets {
		out = append(out, target{name, count(n)})
	}
	slices.SortFunc(out, func(a, b target) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.name, b.name))
	})
	return out
}
