package profile

// Apply returns the part of p that a filter leaves as a profile of its own, with all events,
// whatever f.Event is. It shares everything that does not change with p, which stays as it is.
func Apply(p *Profile, f Filter) *Profile {
	out := *p
	out.Samples = nil
	m := p.matcher(f)
	// Sums were cut by time before, and have no time.
	summed := m
	summed.from, summed.to = 0, 0
	n, whole := 0, true
	try := func(m *matcher, s *Sample) {
		weight, ok := m.part(s)
		if ok {
			n++
		}
		whole = whole && ok && weight == s.Weight
	}
	for i := range p.Samples {
		try(&m, &p.Samples[i])
	}
	room := n
	for _, l := range p.packed {
		l.each(func(s *Sample) { try(&m, s) })
	}
	var s Sample
	p.sums.each(func(u sum) {
		s = u.sample()
		try(&summed, &s)
	})
	if whole && f.Hide == 0 {
		out.Samples = p.Samples
		return &out
	}
	of := out.hide(f.Hide)
	out.Samples = make([]Sample, 0, room)
	left := func(m *matcher, s *Sample) bool {
		weight, ok := m.part(s)
		if !ok {
			return false
		}
		if s.Weight = weight; m.to > 0 {
			s.Time = min(s.Time, m.to) // what is left of a wait that lasted longer
		}
		if of != nil {
			s.Node = of[s.Node]
		}
		return true
	}
	for i := range p.Samples {
		if s := p.Samples[i]; left(&m, &s) {
			out.Samples = append(out.Samples, s)
		}
	}
	out.keep(p, func(s *Sample) bool { return left(&m, s) }, func(s *Sample) bool { return left(&summed, s) })
	return &out
}

// hide replaces p's nodes by ones without frames of some kinds, and returns the new index of each
// old node.
func (p *Profile) hide(kinds KindSet) (of []uint32) {
	if kinds == 0 {
		return nil
	}
	trie := NewTrie()
	of = make([]uint32, len(p.Nodes))
	for i := 1; i < len(p.Nodes); i++ {
		n := p.Nodes[i]
		of[i] = of[n.Parent]
		if !kinds.Has(p.Frames[n.Frame].Kind) {
			of[i] = trie.Child(of[n.Parent], n.Frame)
		}
	}
	p.Nodes = trie.flat()
	return of
}
