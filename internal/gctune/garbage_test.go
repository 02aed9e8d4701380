package gctune

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// The garbage that may accumulate stays the same as the heap grows, from the next collection on,
// without a further call.
func TestCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	var c Collector
	c.Start()
	if got := percent(); got != most {
		t.Errorf("it begins at %d %%", got)
	}
	large = make([]byte, 80<<20)
	if got := waitFor(func(p uint64) bool { return p >= least && p <= 25 }); got < least || got > 25 {
		t.Errorf("%d %% of a heap of 80 MiB", got)
	}
	large = nil
	if got := waitFor(func(p uint64) bool { return p > 100 }); got <= 100 {
		t.Errorf("%d %% of a heap that has become small", got)
	}
	c.Stop()
	runtime.GC()
	time.Sleep(50 * time.Millisecond)
	debug.SetGCPercent(77)
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	if got := percent(); got != 77 {
		t.Errorf("%d %% is set after it was stopped", got)
	}
}

// large makes the heap large.
var large []byte

// percent returns how much the heap may grow, in percent.
func percent() uint64 {
	now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(now)
	return now[0].Value.Uint64()
}

// waitFor collects until the percentage is right, and returns the last one.
func waitFor(right func(uint64) bool) uint64 {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		runtime.GC()
		if p := percent(); right(p) || time.Now().After(end) {
			return p
		}
	}
}

// Until it is stopped, Bound makes a large heap be collected often, and afterwards the heap is
// collected as before.
func TestBound(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	stop := Bound()
	hold := make([]byte, 80<<20)
	hold[0] = 1
	got := waitFor(func(p uint64) bool { return p <= 25 })
	stop()
	if hold[0] != 1 || got > 25 {
		t.Errorf("%d %% of a heap of 80 MiB", got)
	}
	if after := debug.SetGCPercent(77); after != 77 {
		t.Errorf("%d %% afterwards, before it was 77", after)
	}
}

// A Collector allows as much garbage as it is told to.
func TestGarbageAllowed(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	c := Collector{Garbage: 40 << 20}
	c.Start()
	defer c.Stop()
	large = make([]byte, 80<<20)
	defer func() { large = nil }()
	if got := waitFor(func(p uint64) bool { return p >= 40 && p <= 60 }); got < 40 || got > 60 {
		t.Errorf("%d %% of a heap of 80 MiB, for 40 MiB of garbage", got)
	}
}
