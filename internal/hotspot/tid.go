package hotspot

import "github.com/candid-profiler/candid/internal/target"

// tidMap translates the thread ids that the VM knows, which are those of its own pid namespace,
// into ours. It is nil if both are the same.
type tidMap struct {
	p       *target.Process
	outside map[uint32]uint32 // inner to outer
	known   map[uint32]uint32 // outer to inner
}

// newTIDMap makes the map for a process, nil if it needs none.
func newTIDMap(p *target.Process) *tidMap {
	if p.NamespacePID() == p.PID {
		return nil
	}
	return &tidMap{p: p, outside: make(map[uint32]uint32), known: make(map[uint32]uint32)}
}

// refresh adds threads that have started and removes those that have ended.
func (m *tidMap) refresh() {
	if m == nil {
		return
	}
	threads, err := m.p.Threads()
	if err != nil {
		return
	}
	known := make(map[uint32]uint32, len(threads))
	clear(m.outside)
	for _, t := range threads {
		outer := uint32(t.TID)
		inner, ok := m.known[outer]
		if !ok {
			if inner, ok = innerTID(m.p.PID, t.TID); !ok {
				continue
			}
		}
		known[outer], m.outside[inner] = inner, outer
	}
	m.known = known
}

// of returns our id of a thread; false if the thread is gone.
func (m *tidMap) of(inner uint32) (uint32, bool) {
	if m == nil {
		return inner, true
	}
	outer, ok := m.outside[inner]
	return outer, ok
}
