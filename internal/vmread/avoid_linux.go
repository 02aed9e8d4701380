package vmread

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Avoided is memory of a process that is not read, because a read of it does not return, or may not.
// It may be used by several goroutines.
type Avoided struct {
	mu     sync.Mutex
	spans  atomic.Pointer[[]Span] // by address; nil: there are none
	served []Span                 // files of file systems that do not answer
	stuck  []Span                 // reads that were given up
	said   map[string]bool
	notes  []string
}

// Span is the addresses [Start, End).
type Span struct{ Start, End uint64 }

// Has reports whether any of the bytes are not to be read.
func (a *Avoided) Has(addr uint64, n int) bool {
	return n > 0 && a.Until(addr, n) < n
}

// put publishes the spans. The caller holds a.mu.
func (a *Avoided) put() {
	all := slices.Concat(a.served, a.stuck)
	if len(all) == 0 {
		a.spans.Store(nil)
		return
	}
	slices.SortFunc(all, func(x, y Span) int { return cmp.Compare(x.Start, y.Start) })
	out := all[:1]
	for _, s := range all[1:] {
		if last := &out[len(out)-1]; s.Start <= last.End {
			last.End = max(last.End, s.End)
		} else {
			out = append(out, s)
		}
	}
	a.spans.Store(&out)
}

// Serve sets the memory of files that are provided by a program that does not answer.
func (a *Avoided) Serve(spans []Span) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(spans) > 0 || len(a.served) > 0 {
		a.served = spans
		a.put()
	}
}

// GiveUp adds memory of which a read does not return.
func (a *Avoided) GiveUp(s Span) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stuck = append(a.stuck, s)
	a.put()
}

// Notes returns what was noted.
func (a *Avoided) Notes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.notes)
}

// Note keeps a line for the user, once.
func (a *Avoided) Note(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.said[line] || len(a.notes) >= 8 {
		return
	}
	if a.said == nil {
		a.said = map[string]bool{}
	}
	a.said[line] = true
	a.notes = append(a.notes, line)
}

// Until returns how many of n bytes from addr on are before the first that are not to be read.
func (a *Avoided) Until(addr uint64, n int) int {
	p := a.spans.Load()
	if p == nil {
		return n
	}
	i, _ := slices.BinarySearchFunc(*p, addr, endsAfter)
	if i == len(*p) || (*p)[i].Start >= addr+uint64(n) {
		return n
	}
	return int(max((*p)[i].Start, addr) - addr)
}

// endsAfter finds the first span that ends after an address.
func endsAfter(s Span, addr uint64) int {
	if s.End <= addr {
		return -1
	}
	return 1
}
