package record

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Go lets the heap double before it collects. While recording nearly all of it
// is tables that stay and the little garbage comes slowly, so that collecting
// earlier costs next to nothing and saves half of the memory.
const (
	// garbage is how much of it is let pile up, bytes.
	garbage   = 16 << 20
	usual     = 100 // GOGC
	least     = 15
	tuneEvery = time.Second
)

// collector keeps garbage within bounds as the heap grows.
type collector struct {
	tuned   time.Time
	percent int
	sample  [1]metrics.Sample
}

func (c *collector) tune() {
	if time.Since(c.tuned) < tuneEvery {
		return
	}
	c.tuned = time.Now()
	if c.percent == 0 {
		c.percent = usual
		c.sample[0].Name = "/gc/heap/live:bytes"
	}
	metrics.Read(c.sample[:])
	if c.sample[0].Value.Kind() != metrics.KindUint64 {
		return
	}
	live := max(c.sample[0].Value.Uint64(), 1<<20)
	percent := int(min(max(100*garbage/live, least), usual))
	// Each change stops all for a moment.
	if d := percent - c.percent; d <= -5 || d >= 20 {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// shrink gives back what is not used any more.
func (c *collector) shrink() { debug.FreeOSMemory() }
