// Package gctune keeps what is let go of in candid's own heap within bounds.
package gctune

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Go lets the heap double before it collects, and begins at 4 MB. In candid nearly
// all of a large heap is tables that stay, without pointers, and the little garbage
// comes slowly, so that collecting when a fixed amount has come costs next to nothing,
// and saves up to half of the memory in the end.
const (
	allowed = 8 << 20 // how much garbage is let pile up, bytes
	most    = 400     // percent of what lives: GOGC
	least   = 10

	// tuneEvery is for what grows slowly, beside which a moment in which all stops counts.
	tuneEvery = time.Second
	// boundEvery is for what grows as fast as files are read.
	boundEvery = 50 * time.Millisecond
)

// Collector keeps garbage within bounds as the heap grows. It is of the whole
// program: there is one at a time.
type Collector struct {
	tuned   time.Time
	percent int
	sample  [1]metrics.Sample
}

// Start begins with a small heap.
func (c *Collector) Start() {
	c.percent, c.tuned = most, time.Now()
	c.sample[0].Name = "/gc/heap/live:bytes"
	debug.SetGCPercent(most)
}

// Tune looks at the heap, once a second at most.
func (c *Collector) Tune() {
	if time.Since(c.tuned) >= tuneEvery {
		c.tune()
	}
}

func (c *Collector) tune() {
	c.tuned = time.Now()
	metrics.Read(c.sample[:])
	if c.sample[0].Value.Kind() != metrics.KindUint64 {
		return
	}
	live := max(c.sample[0].Value.Uint64(), 1<<20)
	percent := int(min(max(100*allowed/live, least), most))
	// Each change stops all for a moment.
	if percent*10 < c.percent*9 || percent*10 > c.percent*12 {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// Bound keeps garbage within bounds while a large file is read and written, until
// the function that it gives is called.
func Bound() (stop func()) {
	before := debug.SetGCPercent(most)
	var c Collector
	c.Start()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(boundEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				c.tune()
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
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
