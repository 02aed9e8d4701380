package threads

import (
	"strings"

	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/wine"
)

// tidMap translates the thread ids that the VM knows, which are those of its own pid namespace, or
// of Windows for one in Wine, into ours. It is nil if both are the same.
type tidMap struct {
	p       *target.Process
	wine    *wine.Process     // nil if it does not run in Wine
	outside map[uint32]uint32 // inner to outer
	known   map[uint32]uint32 // outer to inner
}

// newTIDMap makes the map for a process, nil if it needs none. file is the VM's library.
func newTIDMap(p *target.Process, file string) *tidMap {
	if strings.HasSuffix(file, ".dll") {
		if w, err := wine.Open(p); err == nil {
			return &tidMap{p: p, wine: w}
		}
	}
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
	if m.wine != nil {
		m.outside = m.wine.Threads()
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
