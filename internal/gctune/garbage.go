// Package gctune bounds the garbage in candid's own heap.
package gctune

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
)

// Go lets the heap double before it collects, and begins at 4 MB. In candid nearly all of a large
// heap is tables that stay, without pointers, and the little garbage accumulates slowly, so
// collecting after a fixed amount of garbage costs next to nothing, and saves up to half of the
// memory in the end.
const (
	allowed = 8 << 20 // bytes of garbage that may accumulate, unless a Collector says otherwise
	most    = 400     // percent of the live heap: GOGC
	least   = 10
)

// Collector bounds garbage as the heap grows. It affects the whole process: of several that have been
// started, the first one that was not stopped does it.
type Collector struct {
	// Garbage is how many bytes of garbage may accumulate; 0: 8 MiB. It is set before Start.
	Garbage uint64

	mu      sync.Mutex
	percent int
	stopped bool
	sample  [1]metrics.Sample
}

// started are the Collectors that were not stopped, in the order in which they were started.
var started struct {
	mu   sync.Mutex
	list []*Collector
}

// first reports whether c is the one that tunes the heap.
func (c *Collector) first() bool {
	started.mu.Lock()
	defer started.mu.Unlock()
	return len(started.list) > 0 && started.list[0] == c
}

// cycle becomes garbage at once, so that its finalizer runs after each collection: then the size of
// the live heap is known, and if the heap has grown much since the last collection, the garbage
// allowed on top of it is too much.
type cycle struct{ c *Collector }

// Start begins with a small heap. Until Stop is called the heap is checked after each collection.
func (c *Collector) Start() {
	c.percent = most
	c.sample[0].Name = "/gc/heap/live:bytes"
	started.mu.Lock()
	started.list = append(started.list, c)
	started.mu.Unlock()
	if c.first() {
		debug.SetGCPercent(most)
	}
	c.watch()
}

// Stop leaves the heap as it is tuned now.
func (c *Collector) Stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	started.mu.Lock()
	started.list = slices.DeleteFunc(started.list, func(o *Collector) bool { return o == c })
	started.mu.Unlock()
}

func (c *Collector) watch() {
	runtime.SetFinalizer(&cycle{c}, func(s *cycle) {
		if s.c.tune() {
			s.c.watch()
		}
	})
}

// tune adjusts the percentage to the heap; false if the Collector was stopped.
func (c *Collector) tune() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return false
	}
	if !c.first() {
		return true
	}
	metrics.Read(c.sample[:])
	if c.sample[0].Value.Kind() != metrics.KindUint64 {
		return true
	}
	live := max(c.sample[0].Value.Uint64(), 1<<20)
	percent := int(min(max(100*cmp.Or(c.Garbage, allowed)/live, least), most))
	// Each change stops the world for a moment.
	if percent*10 < c.percent*9 || percent*10 > c.percent*12 {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
	return true
}

// Bound bounds garbage while a large file is read and written, until the function that it returns
// is called.
func Bound() (stop func()) {
	before := debug.SetGCPercent(most)
	c := new(Collector)
	c.Start()
	return func() {
		c.Stop()
		debug.SetGCPercent(before)
	}
}

// settled is how many bytes of garbage may accumulate beside what stays.
const settled = 64 << 20

// Settle is called when a file was read that stays in memory for as long as it is viewed: the
// garbage of reading it is returned to the system, and the heap does not double again.
func Settle() {
	debug.FreeOSMemory()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() == metrics.KindUint64 {
		debug.SetGCPercent(int(min(max(100*settled/max(live[0].Value.Uint64(), 1), least), 100)))
	}
}
