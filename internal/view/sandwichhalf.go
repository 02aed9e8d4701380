package view

import (
	"fmt"
	"slices"
)

// maker makes a part of a half: it takes groups of places, each of which is one node of the half,
// and leaves the groups of what lies behind it. The groups lie one after the other on a stack, the
// next one last, so that they need no more room than the widest node.
type maker struct {
	*sandwiching
	up      bool
	stack   []has
	groups  []group
	out     half
	scratch []has
	bunches []bunch
	bunchOf []int32
	slot    []int32 // by key: its bunch, from 1 on
	met     []int32 // by place: where it is among the callers, from 1 on
}

// group is what one node is made of: it begins at lo on the stack, and its node at x in the half.
type group struct {
	lo     int
	x      uint64
	folded uint32 // how many narrow nodes it stands for; such a node has nothing behind it
}

// bunch is a group that is being made.
type bunch struct {
	key           uint32
	at, n         int
	after, before uint64
	x             uint64
	narrow        bool
}

// someNodes is how many nodes are made between two checks whether they are still wanted.
const someNodes = 4096

// visit makes the node of the last group, and all behind it.
func (m *maker) visit(g group, depth uint32) {
	base := len(m.groups)
	m.step(g, depth)
	for len(m.groups) > base {
		next := m.groups[len(m.groups)-1]
		m.groups = m.groups[:len(m.groups)-1]
		m.visit(next, depth+1)
	}
}

// step makes the node of the last group, and replaces the group by those behind it.
func (m *maker) step(g group, depth uint32) {
	lo := g.lo
	if len(m.out.depth)%someNodes == 0 {
		if m.nodes.Add(someNodes) > maxSandwich {
			m.stop(fmt.Errorf("%w: the callers and callees of this method are more than %d million frames: choose a part of the recording", ErrQuery, maxSandwich>>20))
		}
		if m.ctx.Err() != nil {
			m.stack, m.groups = m.stack[:lo], m.groups[:0]
			return
		}
	}
	if g.folded > 0 {
		m.out.add(depth, nowhere, g.folded, m.stack[lo], m.before != nil)
		m.stack = m.stack[:lo]
		return
	}
	group := m.stack[lo:]
	var after, before uint64
	most := 0
	for i, h := range group {
		after += h.after
		before += h.before
		if b := &group[most]; h.after > b.after || h.after == b.after && h.before > b.before {
			most = i
		}
	}
	m.out.add(depth, group[most].place, 0, has{after: after, before: before}, m.before != nil)
	m.scratch = m.scratch[:0]
	if m.up {
		m.callers(group)
	} else {
		m.callees(group)
	}
	m.stack = m.stack[:lo]
	m.divide(lo, g.x)
}

func (m *maker) callees(group []has) {
	end := m.ways.end
	for _, h := range group {
		for c := h.place + 1; c < end[h.place]; c = end[c] {
			if m.any(c) {
				m.scratch = append(m.scratch, m.of(c))
			}
		}
	}
}

// callers merges callers of a group that are the same place.
func (m *maker) callers(group []has) {
	for _, h := range group {
		up := m.ways.parent[h.place]
		if up == 0 {
			continue
		}
		if at := m.met[up]; at > 0 {
			m.scratch[at-1].after += h.after
			m.scratch[at-1].before += h.before
			continue
		}
		m.scratch = append(m.scratch, has{up, h.after, h.before})
		if len(group) > 1 {
			m.met[up] = int32(len(m.scratch))
		}
	}
	for _, h := range m.scratch {
		m.met[h.place] = 0
	}
}

// divide moves what is in scratch to the stack, in groups of one method each, the heaviest last,
// and below them what is too narrow to be seen, as one group.
func (m *maker) divide(lo int, x uint64) {
	n := len(m.scratch)
	if n == 0 {
		return
	}
	if n == 1 { // the most frequent case
		h := m.scratch[0]
		g := group{lo: lo, x: x}
		if m.narrow(&bunch{after: h.after, before: h.before}, x) {
			g.folded = 1
		}
		m.stack, m.groups = append(m.stack, h), append(m.groups, g)
		return
	}
	m.bunches, m.bunchOf = m.bunches[:0], m.bunchOf[:0]
	for _, h := range m.scratch {
		key := m.ways.key[m.sym[h.place]]
		if m.slot[key] == 0 {
			m.bunches = append(m.bunches, bunch{key: key})
			m.slot[key] = int32(len(m.bunches))
		}
		b := &m.bunches[m.slot[key]-1]
		b.n++
		b.after += h.after
		b.before += h.before
		m.bunchOf = append(m.bunchOf, int32(key))
	}
	m.order()
	var narrow has
	folded := uint32(0)
	for i := range m.bunches {
		b := &m.bunches[i]
		if b.narrow = m.narrow(b, x); b.narrow {
			narrow.after += b.after
			narrow.before += b.before
			folded++
			n -= b.n
		}
		b.x = x
		if !b.narrow {
			x += m.seen.of(has{after: b.after, before: b.before})
		}
	}
	at := lo
	if folded > 0 {
		m.stack, m.groups = append(m.stack, narrow), append(m.groups, group{lo, x, folded})
		at++
	}
	m.stack = slices.Grow(m.stack, n)[:at+n]
	for i := len(m.bunches) - 1; i >= 0; i-- {
		b := &m.bunches[i]
		m.slot[b.key] = int32(i + 1)
		if b.narrow {
			continue
		}
		m.groups = append(m.groups, group{at, b.x, 0})
		b.at = at
		at += b.n
	}
	for i, h := range m.scratch {
		if b := &m.bunches[m.slot[m.bunchOf[i]]-1]; !b.narrow {
			m.stack[b.at] = h
			b.at++
		}
	}
	for _, b := range m.bunches {
		m.slot[b.key] = 0
	}
}

// order sorts the bunches, the heaviest first. Usually there are few, and they are in order.
func (m *maker) order() {
	list := m.bunches
	if len(list) > 16 {
		slices.SortFunc(list, func(a, b bunch) int {
			if a.first(&b) {
				return -1
			}
			return 1
		})
		return
	}
	for i := 1; i < len(list); i++ {
		if !list[i].first(&list[i-1]) {
			continue
		}
		b := list[i]
		k := i
		for ; k > 0 && b.first(&list[k-1]); k-- {
			list[k] = list[k-1]
		}
		list[k] = b
	}
}

// first reports whether a bunch comes before another.
func (b *bunch) first(o *bunch) bool {
	if b.after != o.after {
		return b.after > o.after
	}
	if b.before != o.before {
		return b.before > o.before
	}
	return b.key < o.key
}
