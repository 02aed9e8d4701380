package record

import (
	"fmt"
	"maps"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"time"
)

// A whole machine runs more programs than there is memory for their tables. 200 MB are for
// everything: candid's own program and the engine's ring take 25 to 30, the backlog in which
// samples wait up to 48 while candid gets too little of the CPUs, garbage and what Go's runtime
// needs some 25. What is left is for what lives on the heap, and there is one order in which
// it is given back:
//
//  1. Source lines are read only up to linesHeap. They are by far the largest part of what is
//     kept of a file, and what can be gone without first.
//  2. Copies of targets' pages take allPages at most: those of processes that were sampled
//     longest ago go first.
//  3. Above allHeap the files used longest ago go, until it is low enough. They are read
//     again when a name in them is asked for that has not been asked for yet.
//
// Unwind tables and Go's tables of functions are not kept at all (see fileblocks).
const (
	allHeap   = 96 << 20
	linesHeap = 80 << 20
	allPages  = 12 << 20
	// allShared bounds what files that processes may come for take of that.
	allShared = 64 << 20
)

// room reports whether there is memory for source lines. Its methods may be called from any
// goroutine.
type room struct {
	refused atomic.Int64
	used    func() uint64 // nil: by the heap

	cycle uint64 // of the collector, in which files were given back last
}

// has reports whether there is room for so many bytes more.
func (r *room) has(bytes uint64) bool {
	used := r.used
	if used == nil {
		used = heapUsed
	}
	if bytes <= linesHeap && used() <= linesHeap-bytes {
		return true
	}
	r.refused.Add(1)
	return false
}

// heapUsed is what the heap holds now, garbage included, bytes.
func heapUsed() uint64 { return metric("/memory/classes/heap/objects:bytes") }

// metric gives one number of Go's runtime.
func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	if metrics.Read(s); s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}

// excess is by how much the heap was too large when it was last collected, bytes. What is
// given back because of that shows with the collection after the next: one may be under way.
func (r *room) excess(live, cycle uint64) int {
	if live <= allHeap || r.cycle != 0 && cycle < r.cycle+2 {
		return 0
	}
	r.cycle = cycle
	return int(live - allHeap)
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
	// thinEvery is how often it is looked for what need not be kept.
	thinEvery = time.Second
	// thinAfter is for how long a process has not been sampled of which less is kept.
	thinAfter = 2 * time.Second
	// pagesEvery is how often the copies of pages are counted.
	pagesEvery = 100 * time.Millisecond
)

// thin gives back the memory that processes of a whole machine take which do not run at the
// moment: copies of their pages, and what was found of single addresses, up to 4 MB each.
// Those that have ended keep theirs, while there is room: nothing of them can be read again.
func (s *session) thin(now time.Time) {
	if !s.o.All {
		return
	}
	if now.Sub(s.trimmed) >= pagesEvery {
		s.trimmed = now
		s.trimPages()
	}
	if now.Sub(s.thinned) < thinEvery {
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
	if n := s.room.excess(metric("/gc/heap/live:bytes"), metric("/gc/cycles/total:gc-cycles")); n > 0 {
		s.names.Shrink(max(s.names.Held()-n, 0))
	}
}

// trimPages bounds the copies of pages of all processes. Those of processes that have ended,
// whose last samples may yet come, are worth the most.
func (s *session) trimPages() {
	sum := 0
	for _, p := range s.procs {
		sum += p.target.Memory().Held()
	}
	if sum <= allPages {
		return
	}
	procs := slices.Collect(maps.Values(s.procs))
	slices.SortFunc(procs, func(a, b *process) int {
		if a.gone != b.gone {
			if a.gone {
				return 1
			}
			return -1
		}
		return a.sampled.Compare(b.sampled)
	})
	for _, p := range procs {
		if sum <= allPages/2 {
			return
		}
		m := p.target.Memory()
		sum -= m.Held()
		m.Forget()
	}
}
