package profile

// Part is the samples of a profile that have a key in common.
type Part[K comparable] struct {
	Key     K
	Samples []uint32 // indices into Samples, in its order
	Weight  uint64   // of all of them together
}

// Parts splits the samples of p by a key. Keys come in the order of their first
// samples. The indices are the caller's, to be sorted as is needed.
func Parts[K comparable](p *Profile, key func(*Sample) K) []Part[K] {
	// Counted first, all parts fit into one list of the right size: lists that grow
	// would take twice as much, for millions of samples.
	var parts []Part[K]
	var counts []int
	at := map[K]int{}
	for i := range p.Samples {
		s := &p.Samples[i]
		k := key(s)
		n, ok := at[k]
		if !ok {
			n = len(parts)
			at[k] = n
			parts, counts = append(parts, Part[K]{Key: k}), append(counts, 0)
		}
		counts[n]++
		parts[n].Weight += s.Weight
	}
	room := make([]uint32, len(p.Samples))
	for i, n := range counts {
		parts[i].Samples, room = room[:0:n], room[n:]
	}
	for i := range p.Samples {
		part := &parts[at[key(&p.Samples[i])]]
		part.Samples = append(part.Samples, uint32(i))
	}
	return parts
}

// Track is what tells the tracks of a timeline apart: a thread's samples of an event.
type Track struct {
	Thread uint32
	Event  uint16
}

// Lane is the samples of one track, in the order of time.
type Lane struct {
	Track
	Samples int
	Weight  uint64 // of all of them together
	log     *sampleLog
}

// Each visits the samples, in the order of time.
func (l *Lane) Each(visit func(i int, s *Sample)) {
	i := 0
	l.log.each(func(s Sample) {
		visit(i, &s)
		i++
	})
}

// Lanes splits the single samples of p by track.
func Lanes(p *Profile) []Lane {
	logs := p.packed
	if !tracked(p) {
		logs = nil
		of := map[Track]*sampleLog{}
		var last *sampleLog
		p.Each(func(s *Sample, _ uint64) {
			if t := (Track{s.Thread, s.Event}); last == nil || last.last.Thread != t.Thread || last.last.Event != t.Event {
				if last = of[t]; last == nil {
					last = &sampleLog{}
					of[t] = last
					logs = append(logs, last)
				}
			}
			last.add(*s)
		})
	}
	lanes := make([]Lane, len(logs))
	for i, l := range logs {
		lanes[i].log = l.ordered()
		lanes[i].Each(func(_ int, s *Sample) {
			lanes[i].Track = Track{s.Thread, s.Event}
			lanes[i].Samples++
			lanes[i].Weight += s.Weight
		})
	}
	return lanes
}

// tracked says whether p has the samples of each track by themselves.
func tracked(p *Profile) bool {
	seen := map[Track]bool{}
	for _, l := range p.packed {
		first, one := Track{}, true
		i := 0
		l.each(func(s Sample) {
			t := Track{s.Thread, s.Event}
			if i == 0 {
				first = t
			}
			one = one && t == first
			i++
		})
		if !one || seen[first] {
			return false
		}
		seen[first] = true
	}
	return len(p.Samples) == 0 && p.sums.samples == 0
}
