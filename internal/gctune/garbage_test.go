package gctune

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// The garbage that is let pile up stays the same as the heap grows.
func TestCollector(t *testing.T) {
	var c Collector
	c.Start()
	if c.percent != most {
		t.Errorf("it begins at %d %%", c.percent)
	}
	hold := make([]byte, 80<<20)
	hold[0] = 1
	for range 3 { // a collection ends with the heap that was live in it
		c.tuned = c.tuned.Add(-2 * tuneEvery)
		runtime.GC()
		c.Tune()
	}
	if hold[0] != 1 || c.percent < least || c.percent > 25 {
		t.Errorf("%d %% of a heap of 80 MiB", c.percent)
	}
}

// As long as it lasts a large heap is collected often, and afterwards as before.
func TestBound(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	stop := Bound()
	hold := make([]byte, 80<<20)
	hold[0] = 1
	runtime.GC()
	now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	var percent uint64
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		metrics.Read(now)
		if percent = now[0].Value.Uint64(); percent <= 25 {
			break
		}
	}
	stop()
	if hold[0] != 1 || percent > 25 {
		t.Errorf("%d %% of a heap of 80 MiB", percent)
	}
	if after := debug.SetGCPercent(77); after != 77 {
		t.Errorf("%d %% afterwards, before it was 77", after)
	}
}
