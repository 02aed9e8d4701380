package record

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Go lets the heap double before it collects, and begins at 4 MB. While
// recording nearly all of it is tables that stay and the little garbage comes
// slowly, so that collecting when a fixed amount has come costs next to nothing,
// and saves half of the memory in the end.
const (
	// garbage is how much of it is let pile up, bytes.
	garbage   = 16 << 20
	most      = 400 // percent of what lives: GOGC
	least     = 15
	tuneEvery = time.Second
)

// collector keeps garbage within bounds as the heap grows.
type collector struct {
	tuned   time.Time
	percent int
	sample  [1]metrics.Sample
}

func (c *collector) start() {
	c.percent, c.tuned = most, time.Now()
	c.sample[0].Name = "/gc/heap/live:bytes"
	debug.SetGCPercent(most)
}

func (c *collector) tune() {
	if time.Since(c.tuned) < tuneEvery {
		return
	}
	c.tuned = time.Now()
	metrics.Read(c.sample[:])
	if c.sample[0].Value.Kind() != metrics.KindUint64 {
		return
	}
	live := max(c.sample[0].Value.Uint64(), 1<<20)
	percent := int(min(max(100*garbage/live, least), most))
	// Each change stops all for a moment.
	if percent*10 < c.percent*9 || percent*10 > c.percent*12 {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}
