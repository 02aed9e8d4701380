package profile

// Part is the samples of a profile that have a key in common, in an order.
type Part[K comparable] struct {
	Key     K
	Samples int
	sorted  *sorter
}

// Each visits the samples in their order; those that compare as equal in that in which
// they came.
func (p *Part[K]) Each(visit func(s *Sample)) { p.sorted.each(visit) }

// Parts splits the single samples of p by a key, and sorts each part. Keys come in the
// order of their first samples.
func Parts[K comparable](p *Profile, key func(*Sample) K, compare func(a, b *Sample) int) []Part[K] {
	var parts []Part[K]
	at := map[K]int{}
	p.Each(func(s *Sample, _ uint64) {
		k := key(s)
		n, ok := at[k]
		if !ok {
			n = len(parts)
			at[k] = n
			parts = append(parts, Part[K]{Key: k, sorted: &sorter{compare: compare}})
		}
		parts[n].Samples++
		parts[n].sorted.add(*s)
	})
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
