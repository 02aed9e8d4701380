package record

import (
	"fmt"
	"maps"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"time"
)

// A whole machine runs more programs than there is memory for their tables. The limit is 200 MB in
// total, unless Options.Heap asks for less: candid's own program and the engine's ring take 25 to 30, the backlog in which samples
// wait takes up to 48 while candid gets too little of the CPUs, garbage and what Go's runtime needs
// take some 25. The rest is for what lives on the heap, which is freed in a fixed order:
//
//  1. Source lines are read only up to linesHeap. If the debug information of a file is compressed, it
//     is by far the largest part of what is kept of it, and the part that can most easily be done
//     without; if it is not, most of it stays in the file. What look-ups have left is freed once no new
//     address of the file was looked up for some time, and what was unpacked after a longer time.
//  2. Copies of targets' pages take allPages at most: the copies for the processes that were
//     sampled longest ago are freed first.
//  3. Above allHeap the least recently used files are freed, until the heap is small enough: of those
//     with compressed debug information that first. They are read again when a name in them is needed
//     that has not been looked up yet.
//
// Unwind tables and Go's function tables are not kept at all (see fileblocks).
const (
	allHeap   = 96 << 20
	linesHeap = 80 << 20
	allPages  = 12 << 20
	// allGarbage may accumulate before it is collected: each collection looks at all of the heap.
	allGarbage = 16 << 20
	// allShared bounds the part of it for files that future processes may use.
	allShared = 64 << 20

	// symbolsHeap is how large the heap may be for tables of symbols, whatever is recorded, and for
	// source lines of chosen processes. A target chooses its files.
	symbolsHeap = 384 << 20
	// symbolsCPU is how much CPU time reading symbols may take in a recording.
	symbolsCPU = 10 * time.Second
)

// forSymbols reports whether there is room for so many bytes of tables of symbols.
func forSymbols(bytes uint64) bool { return bytes <= symbolsHeap && heapUsed() <= symbolsHeap-bytes }

// room decides whether there is memory for source lines. Its methods may be called from any
// goroutine.
type room struct {
	all     bool   // a whole machine is recorded
	heap    uint64 // instead of allHeap, bytes; 0: allHeap
	refused atomic.Int64
	used    func() uint64 // nil: read from the heap

	cycle uint64 // of the collector, in which files were last freed
}

// memory is what a session that records a whole machine does to keep within its limit.
type memory struct {
	room    room
	thinned time.Time // when processes were last looked over
	trimmed time.Time // when copies of pages were last counted
}

// has reports whether there is room for that many more bytes.
func (r *room) has(bytes uint64) bool {
	used := r.used
	if used == nil {
		used = heapUsed
	}
	most := uint64(symbolsHeap)
	if r.all {
		most = r.share(linesHeap)
	}
	if bytes <= most && used() <= most-bytes {
		return true
	}
	r.refused.Add(1)
	return false
}

// share returns a bound that is a part of allHeap as the same part of what the heap may take.
func (r *room) share(bound uint64) uint64 {
	if r.heap == 0 {
		return bound
	}
	return r.heap * (bound >> 20) / (allHeap >> 20)
}

// heapUsed returns how many bytes the heap holds now, garbage included.
func heapUsed() uint64 { return metric("/memory/classes/heap/objects:bytes") }

// metric returns one value of Go's runtime metrics.
func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	if metrics.Read(s); s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}

// excess returns by how many bytes the heap was too large when it was last collected. Memory that
// is freed because of that shows with the collection after the next: one may be under way.
func (r *room) excess(live, cycle uint64) int {
	most := r.share(allHeap)
	if live <= most || r.cycle != 0 && cycle < r.cycle+2 {
		return 0
	}
	r.cycle = cycle
	return int(live - most)
}

// note returns what was left out, "" if nothing was.
func (r *room) note() string {
	n := r.refused.Load()
	if n == 0 {
		return ""
	}
	if !r.all {
		return fmt.Sprintf("source lines and inlined functions were not read %d times: with those of all files together candid would take more than %d MB for them", n, symbolsHeap>>20)
	}
	if r.heap > 0 {
		return fmt.Sprintf("source lines and inlined functions were not read %d times: with those of all programs candid would take more memory than it is limited to", n)
	}
	return fmt.Sprintf("source lines and inlined functions were not read %d times: with those of all programs candid would take more than some 200 MB (with -p there is more room)", n)
}

const (
	// thinEvery is how often candid looks for memory that need not be kept.
	thinEvery = time.Second
	// thinAfter is how long a process must not have been sampled before less is kept of it.
	thinAfter = 2 * time.Second
	// pagesEvery is how often the copies of pages are counted.
	pagesEvery = 100 * time.Millisecond
)

// thin frees memory that is used for processes of a whole machine that are not running at the
// moment: copies of their pages, and what was found for single addresses, up to 4 MB each.
// Processes that have ended keep theirs while there is room: nothing of them can be read again.
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
			s.ended(p) // not every engine reports that it was the last thread
			continue
		}
		if p.thin {
			continue
		}
		p.thin = true
		p.target.Memory().Forget()
		p.code.Native.Forget()
	}
	s.names.Rest(now)
	if n := s.room.excess(metric("/gc/heap/live:bytes"), metric("/gc/cycles/total:gc-cycles")); n > 0 {
		s.names.Shrink(max(s.names.Held()-n, 0))
	}
}

// trimPages bounds the copies of pages of all processes. The copies for processes that have ended,
// whose last samples may yet come, are kept longest.
func (s *session) trimPages() {
	sum := 0
	most := int(s.room.share(allPages))
	for _, p := range s.procs {
		sum += p.target.Memory().Held()
	}
	if sum <= most {
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
		if sum <= most/2 {
			return
		}
		m := p.target.Memory()
		sum -= m.Held()
		m.Forget()
	}
}
