package profile

import (
	"cmp"
	"slices"
)

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

// Tracks splits the samples of p by thread and event, each part in the order of time.
func Tracks(p *Profile) []Part[Track] {
	tracks := Parts(p, func(s *Sample) Track { return Track{s.Thread, s.Event} })
	for _, t := range tracks {
		slices.SortStableFunc(t.Samples, func(a, b uint32) int { return cmp.Compare(p.Samples[a].Time, p.Samples[b].Time) })
	}
	return tracks
}
