package vmread

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Avoided is memory of a process that is not read, because a read of it does not return, or may not.
// It may be used by several goroutines.
type Avoided struct {
	mu     sync.Mutex
	spans  atomic.Pointer[[]Span] // by address; nil: there are none
	served []Span                 // files of file systems that do not answer
	stuck  []givenUpSpan          // reads that were given up
	again  atomic.Int64           // when one of stuck may be tried again, in ns since epoch; only with spans
	clock  func() int64           // ns since epoch; nil: time passes
	said   map[string]bool
	notes  []string
}

// givenUpSpan is memory of which a read was given up. A page server that does not answer blocks it for
// ever, but a program that just held its lock on its mappings for a while does not.
type givenUpSpan struct {
	Span
	reads *Stuck // of whom they were
	times uint   // that a read was given up
	from  int64  // when it may be tried again, in ns since epoch
	free  bool   // it may be read now
}

// Memory is tried again once every read that was given up has returned, after firstTry, and after
// twice as long each time that a read of it is given up again. What has been given up mostTries times
// stays so.
const (
	firstTry  = int64(time.Second)
	mostTries = 6
)

var epoch = time.Now()

func (a *Avoided) now() int64 {
	if a.clock != nil {
		return a.clock()
	}
	return int64(time.Since(epoch))
}

// retry lets memory be read again whose time has come.
func (a *Avoided) retry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for i := range a.stuck {
		s := &a.stuck[i]
		switch {
		case s.free || now < s.from || s.times >= mostTries:
		case s.reads.Count() > 0:
			s.from = now + firstTry
		default:
			s.free = true
		}
	}
	a.put()
}

// Span is the addresses [Start, End).
type Span struct{ Start, End uint64 }

// Has reports whether any of the bytes are not to be read.
func (a *Avoided) Has(addr uint64, n int) bool {
	return n > 0 && a.Until(addr, n) < n
}

// put publishes the spans. The caller holds a.mu.
func (a *Avoided) put() {
	all := slices.Clone(a.served)
	next := int64(math.MaxInt64)
	for _, s := range a.stuck {
		if !s.free {
			all = append(all, s.Span)
		}
		if !s.free && s.times < mostTries {
			next = min(next, s.from)
		}
	}
	a.again.Store(next)
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

// GiveUp adds memory of which a read does not return. It is tried again after a while if it returns
// after all, and none of the others that reads counts is under way.
func (a *Avoided) GiveUp(s Span, reads *Stuck) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.put()
	for i := range a.stuck {
		if old := &a.stuck[i]; s.Start < old.End && old.Start < s.End {
			old.Span = Span{min(s.Start, old.Start), max(s.End, old.End)}
			old.from, old.free = a.now()+firstTry<<old.times, false
			old.times++
			return
		}
	}
	a.stuck = append(a.stuck, givenUpSpan{Span: s, reads: reads, times: 1, from: a.now() + firstTry})
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
	if again := a.again.Load(); again != math.MaxInt64 && a.now() >= again {
		a.retry()
		if p = a.spans.Load(); p == nil {
			return n
		}
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
