// Package gctune keeps what is let go of in candid's own heap within bounds.
package gctune

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Go lets the heap double before it collects, and begins at 4 MB. In candid nearly
// all of a large heap is tables that stay, without pointers, and the little garbage
// comes slowly, so that collecting when a fixed amount has come costs next to nothing,
// and saves up to half of the memory in the end.
const (
	allowed = 8 << 20 // how much garbage is let pile up, bytes
	most    = 400     // percent of what lives: GOGC
	least   = 10
)

// Collector keeps garbage within bounds as the heap grows. It is of the whole
// program: there is one at a time.
type Collector struct {
	mu      sync.Mutex
	percent int
	stopped bool
	sample  [1]metrics.Sample
}

// cycle is garbage at once, so that each collection is told of: then it is known anew what
// lives, and if the heap has grown much since the last one, what may come on top of that is
// too much.
type cycle struct{ c *Collector }

// Start begins with a small heap. Until Stop is called the heap is looked at after each
// collection.
func (c *Collector) Start() {
	c.percent = most
	c.sample[0].Name = "/gc/heap/live:bytes"
	debug.SetGCPercent(most)
	c.watch()
}

// Stop leaves the heap as it is tuned now.
func (c *Collector) Stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
}

func (c *Collector) watch() {
	runtime.SetFinalizer(&cycle{c}, func(s *cycle) {
		if s.c.tune() {
			s.c.watch()
		}
	})
}

// tune looks at the heap; false if nobody wants that any more.
func (c *Collector) tune() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return false
	}
	metrics.Read(c.sample[:])
	if c.sample[0].Value.Kind() != metrics.KindUint64 {
		return true
	}
	live := max(c.sample[0].Value.Uint64(), 1<<20)
	percent := int(min(max(100*allowed/live, least), most))
	// Each change stops all for a moment.
	if percent*10 < c.percent*9 || percent*10 > c.percent*12 {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
	return true
}

// Bound keeps garbage within bounds while a large file is read and written, until
// the function that it gives is called.
func Bound() (stop func()) {
	before := debug.SetGCPercent(most)
	c := new(Collector)
	c.Start()
	return func() {
		c.Stop()
		debug.SetGCPercent(before)
	}
}

// settled is how much garbage is let pile up beside what stays.
const settled = 64 << 20

// Settle is for what was read and stays for as long as it is looked at: what reading it left
// is given back to the system, and the heap does not double again.
func Settle() {
	debug.FreeOSMemory()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() == metrics.KindUint64 {
		debug.SetGCPercent(int(min(max(100*settled/max(live[0].Value.Uint64(), 1), least), 100)))
	}
}
