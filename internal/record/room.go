package record

import (
	"fmt"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// A whole machine runs more programs than there is memory for their tables: 200 MB are
// for everything, of which the engine's ring and backlog take up to a third. Source lines
// and inlined functions are by far the largest part of what is kept of a file, and what can
// be gone without first.
const (
	// allHeap is up to which size of the heap source lines are read, bytes.
	allHeap = 96 << 20
	// allShared bounds what files that processes may come for take of that.
	allShared = 64 << 20
)

// room says whether there is memory for source lines. Its methods may be called from any
// goroutine.
type room struct {
	refused atomic.Int64
	used    func() uint64 // nil: by the heap
}

// has says whether there is room for so many bytes more.
func (r *room) has(bytes uint64) bool {
	used := r.used
	if used == nil {
		used = heapUsed
	}
	if bytes <= allHeap && used() <= allHeap-bytes {
		return true
	}
	r.refused.Add(1)
	return false
}

func heapUsed() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	if metrics.Read(s); s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}

// note says what was left out, "" if nothing was.
func (r *room) note() string {
	n := r.refused.Load()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("source lines and inlined functions were not read %d times: with those of all programs candid would take more than some 200 MB (-p reads those of a process whatever they take)", n)
}

const (
	// thinEvery is how often it is looked for processes of which less may be kept.
	thinEvery = time.Second
	// thinAfter is for how long such a process has not been sampled.
	thinAfter = 2 * time.Second
)

// thin gives back the memory that processes of a whole machine take which do not run at the
// moment: copies of their pages, and what was found of single addresses, up to 4 MB each.
// Those that have ended keep theirs: nothing of them can be read again.
func (s *session) thin(now time.Time) {
	if !s.o.All || now.Sub(s.thinned) < thinEvery {
		return
	}
	s.thinned = now
	for _, p := range s.procs {
		if p.gone || now.Sub(p.sampled) < thinAfter {
			continue
		}
		if !p.target.Alive() {
			s.ended(p) // not every engine tells that it was the last thread
			continue
		}
		if p.thin {
			continue
		}
		p.thin = true
		p.target.Memory().Forget()
		p.code.Native.Forget()
	}
}
