package live

import (
	"cmp"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Open selects which callers of a caller are asked for. If a caller is the only one, it is opened
// without being asked for, for some steps.
type Open struct{ Below map[Method]*Open }

// Caller is a method with its callers, on the stacks that lead from it to the method asked for.
type Caller struct {
	Method
	Kind     walk.Kind
	Count    profile.Count
	Children []*Caller // the heaviest first
	More     bool      // it has callers that were not asked for
}

const (
	// deepest bounds how far callers are followed.
	deepest = 64
	// straight bounds how far single callers are followed without being asked for.
	straight = 8
)

// place is a frame on the way outwards, with the count of its stack.
type place struct {
	node uint32
	profile.Count
}

// callers returns the callers of the innermost occurrence of a method on each stack, so that the
// counts of its callers add up to its total.
func (m *Model) callers(stacks []stackCount, method Method, open *Open) *Caller {
	top := &Caller{Method: method}
	var places []place
	var kinds [walk.NumKinds]uint64
	for _, s := range stacks {
		for n := s.node; n != profile.RootNode; {
			at := m.trie.At(n)
			f := m.faces[at.Frame]
			if m.methods[f.method] == method {
				places = append(places, place{n, s.Count})
				top.Count.Add(s.Count)
				kinds[f.kind] += s.Samples
				break
			}
			n = at.Parent
		}
	}
	top.Kind = most(&kinds)
	m.expand(top, places, open, 0, 0)
	return top
}

// expand adds a caller's children, if they are asked for or if unasked, the number of further steps
// without being asked for, allows it.
func (m *Model) expand(c *Caller, places []place, open *Open, depth, unasked int) {
	groups := make(map[uint32][]place)
	var order []uint32
	for _, p := range places {
		up := m.trie.At(p.node).Parent
		if up == profile.RootNode {
			continue
		}
		method := m.faces[m.trie.At(up).Frame].method
		if groups[method] == nil {
			order = append(order, method)
		}
		groups[method] = append(groups[method], place{up, p.Count})
	}
	if open == nil && unasked == 0 || depth >= deepest {
		c.More = len(groups) > 0
		return
	}
	for _, method := range order {
		child := &Caller{Method: m.methods[method]}
		var kinds [walk.NumKinds]uint64
		for _, p := range groups[method] {
			child.Count.Add(p.Count)
			kinds[m.faces[m.trie.At(p.node).Frame].kind] += p.Samples
		}
		child.Kind = most(&kinds)
		var below *Open
		further := 0
		if open != nil {
			below, further = open.Below[child.Method], straight
		} else {
			further = unasked - 1
		}
		if len(groups) > 1 {
			further = 0
		}
		m.expand(child, groups[method], below, depth+1, further)
		c.Children = append(c.Children, child)
	}
	slices.SortFunc(c.Children, func(a, b *Caller) int {
		return cmp.Or(cmp.Compare(b.Count.Weight, a.Count.Weight), cmp.Compare(b.Count.Samples, a.Count.Samples),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module))
	})
}

func most(kinds *[walk.NumKinds]uint64) walk.Kind {
	best := walk.Kind(0)
	for k, n := range kinds {
		if n > kinds[best] {
			best = walk.Kind(k)
		}
	}
	return best
}
