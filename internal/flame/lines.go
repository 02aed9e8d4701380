package flame

import (
	"cmp"
	"slices"
)

// findLines finds, for each merged node that has several lines, the line of most samples.
func (m *merger) findLines() {
	n := int(m.several)
	if n == 0 {
		return
	}
	m.group, m.first = groupBy(m.group, m.first, len(m.count), n, func(i uint32) (uint32, bool) {
		if i == 0 || m.count[i] == 0 || m.skids(m.p.Nodes[i].Frame) || m.p.Frames[m.p.Nodes[i].Frame].Line <= 0 {
			return 0, false
		}
		line := m.Line[m.place[i]]
		return uint32(-line - 1), line < 0
	})
	type at struct {
		line  int32
		count uint64
	}
	var lines []at
	for g := range n {
		lines = lines[:0]
		group := m.group[m.first[g]:m.first[g+1]]
		for _, i := range group {
			lines = append(lines, at{m.p.Frames[m.p.Nodes[i].Frame].Line, uint64(m.count[i])})
		}
		slices.SortFunc(lines, func(a, b at) int { return cmp.Compare(a.line, b.line) })
		id := m.place[group[0]]
		m.Lines[id] = 0
		var best uint64
		for i := 0; i < len(lines); {
			line, sum := lines[i].line, uint64(0)
			for ; i < len(lines) && lines[i].line == line; i++ {
				sum += lines[i].count
			}
			m.Lines[id]++
			if sum > best {
				best, m.Line[id] = sum, line
			}
		}
	}
}

// groupBy sorts the numbers below n by the group that of returns for them, which is below groups,
// and leaves out those for which ok is false. Group g is list[first[g]:first[g+1]], in the order of
// the numbers. The slices are reused.
func groupBy(list, first []uint32, n, groups int, of func(uint32) (group uint32, ok bool)) (_, _ []uint32) {
	first = append(first[:0], make([]uint32, groups+1)...)
	for i := range uint32(n) {
		if g, ok := of(i); ok {
			first[g+1]++
		}
	}
	for g := range groups {
		first[g+1] += first[g]
	}
	if need := int(first[groups]); cap(list) < need {
		list = make([]uint32, need)
	} else {
		list = list[:need]
	}
	// Filling moves first[g+1] from where group g begins to where it ends.
	for g := groups; g > 0; g-- {
		first[g] = first[g-1]
	}
	for i := range uint32(n) {
		if g, ok := of(i); ok {
			list[first[g+1]] = i
			first[g+1]++
		}
	}
	return list, first
}
