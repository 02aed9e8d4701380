package live

import (
	"maps"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
)

// slot is what was seen in one Interval.
type slot struct {
	number int64
	used   bool
	all    totals
	stacks map[entry]profile.Count
	thread map[uint32]profile.Count
	// extra are sums of stacks that were too many to keep.
	extra map[uint32]selfTotal

	byFace []faceCount // the sum of stacks and extra, unless dirty
	dirty  bool
}

// entry is a thread in a stack, and what it did there.
type entry struct {
	thread, node uint32
	state        profile.State
}

// faceCount is a face with its sums.
type faceCount struct {
	face uint32
	selfTotal
}

func (s *slot) addThread(th uint32, c profile.Count) {
	n := s.thread[th]
	n.Add(c)
	s.thread[th] = n
}

// addStack adds a stack, and reports whether there was room.
func (s *slot) addStack(e entry, c profile.Count, most int) bool {
	n, known := s.stacks[e]
	if !known && len(s.stacks) >= most {
		return false
	}
	n.Add(c)
	s.stacks[e] = n
	return true
}

func (s *slot) addExtra(counts []faceCount) {
	if s.extra == nil {
		s.extra = make(map[uint32]selfTotal)
	}
	for _, c := range counts {
		n := s.extra[c.face]
		n.add(c.selfTotal)
		s.extra[c.face] = n
	}
}

func (s *slot) copyTo(to *slot) {
	*to = *s
	to.stacks, to.thread, to.extra = maps.Clone(s.stacks), maps.Clone(s.thread), maps.Clone(s.extra)
	to.byFace = slices.Clone(s.byFace)
}

// slot returns the slot of a time, and retires the one in its place. A sample that is added after
// its slot has gone counts for the oldest slot.
func (m *Model) slot(time uint64) *slot {
	n := int64(time / uint64(Interval))
	if m.newest-n >= slots {
		n = m.newest - slots + 1
	}
	s := &m.ring[n%slots]
	if s.used && s.number == n {
		return s
	}
	if s.used {
		m.retire(s)
	}
	*s = slot{number: n, used: true, stacks: make(map[entry]profile.Count), thread: make(map[uint32]profile.Count)}
	if n > m.newest {
		m.newest = n
		m.compact()
	}
	return s
}

// retire adds a slot to the sums and empties it.
func (m *Model) retire(s *slot) {
	for len(m.since) < len(m.faces) {
		m.since = append(m.since, selfTotal{})
	}
	for _, c := range m.fold(s) {
		m.since[c.face].add(c.selfTotal)
	}
	*s = slot{}
}

// window returns the slots of the last d, the newest of which is not over yet, and the time from
// which they count, ns since the start.
func (m *Model) window(d uint64) (in []*slot, from uint64) {
	newest := int64(m.now / uint64(Interval))
	oldest := max(newest-int64(d/uint64(Interval)), 0)
	for i := range m.ring {
		if s := &m.ring[i]; s.used && s.number >= oldest {
			in = append(in, s)
		}
	}
	return in, uint64(oldest) * uint64(Interval)
}
