package suspend

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/priority"
)

// Threads that wait for a CPU for longer than they have it at a time are watched all the while:
// when one of them has had its turn it is too late to look at it.
func TestQueueIsWatched(t *testing.T) {
	p := start(t, compile(t, "queue"))
	e := open(t, options(99, p.pid()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- e.Run(ctx, newCounter()) }()
	// If only those that have run within a tenth of a second were watched, there would be some 40.
	const most, enough = 200, 120
	hot := 0
	for end := time.Now().Add(2 * time.Minute); hot < enough && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		e.mu.Lock()
		hot = len(e.hot)
		e.mu.Unlock()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d of %d threads are watched, %+v", hot, most, e.Stops()); hot < enough {
		t.Errorf("only %d of %d threads that want a CPU are watched", hot, most)
	}
}

// crowdSink accepts more time for samples that it already has.
type crowdSink struct {
	*counter
	last map[uint32]uint64
	more int
}

func newCrowdSink() *crowdSink { return &crowdSink{newCounter(), map[uint32]uint64{}, 0} }

func (c *crowdSink) Sample(s *capture.Snapshot) {
	c.counter.Sample(s)
	c.last[s.TID] = s.Sleep
}

func (c *crowdSink) Again(s *capture.Snapshot) (taken, want bool) {
	if s.Sleep == 0 || c.last[s.TID] != s.Sleep {
		return false, true
	}
	c.weight[s.TID] += s.Weight
	c.more++
	return true, false
}

// If many threads want a CPU it takes long until one stops, and meanwhile samples are taken at the
// requested rate. They stand for what all threads ran, and for no thread for more than it ran.
func TestCrowdIsSampled(t *testing.T) {
	const threads = 30
	p := start(t, compile(t, "queue"), strconv.Itoa(threads))
	e := open(t, options(99, p.pid()))
	attempts(t, 8, func() (wrong, held string) {
		c := newCrowdSink()
		late, begin := e.Stats().Throttled, clock()
		before, used := accounts(t, p.pid()), cpuClock(p.pid())
		recordUntil(t, e, c, func() bool { return cpuClock(p.pid())-used >= 4e9 })
		used = cpuClock(p.pid()) - used
		after := accounts(t, p.pid())
		held = heldBack(e, late, time.Duration(clock()-begin))
		var all uint64
		for tid, w := range c.weight {
			all += w
			if ran := after[tid] - before[tid]; w > ran {
				t.Errorf("samples of thread %d stand for %v, it ran %v", tid, time.Duration(w), time.Duration(ran))
			}
		}
		asked := float64(used) / float64(e.opts.Period)
		t.Logf("%d samples of %d threads where %.0f were asked for, and %d at the end; they stand for %v of %v; %+v",
			c.samples, len(c.weight), asked, c.more, time.Duration(all), time.Duration(used), e.Stops())
		switch {
		// Waiting for one stop after the other yields a tenth.
		case float64(c.samples) < 0.25*asked:
			return fmt.Sprintf("%d samples, %.0f were asked for", c.samples, asked), held
		case len(c.weight) < threads*9/10:
			return fmt.Sprintf("%d of %d threads have samples", len(c.weight), threads), held
		case all < used*9/10:
			return fmt.Sprintf("samples stand for %v, the threads ran %v", time.Duration(all), time.Duration(used)), held
		}
		return "", held
	})
	if s := stoppedThreads(t, p.pid()); len(s) > 0 {
		t.Errorf("still stopped: %v", s)
	}
}

// recordUntil runs the engine until there is enough.
func recordUntil(t *testing.T, e *Engine, sink capture.Sink, enough func() bool) {
	t.Helper()
	defer priority.Keep(func(priority.Report) {})()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx, sink) }()
	for ctx.Err() == nil && !enough() {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// A candid that is killed while it waits for many threads to stop leaves all of them running.
func TestKilledInCrowdLeavesNothingStopped(t *testing.T) {
	const threads = 30
	p := start(t, compile(t, "queue"), strconv.Itoa(threads))
	traced := func() (n int) {
		for tid := range accounts(t, p.pid()) {
			if statusNumber(int(tid), "TracerPid") != 0 {
				n++
			}
		}
		return n
	}
	most := 0
	for range 5 {
		cmd := tracer(t, "sample", p.pid())
		n := 0
		// Usually several are traced at once soon; if candid gets no CPU there may be none.
		for end := time.Now().Add(3 * time.Second); n < 2 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			n = traced()
		}
		most = max(most, n)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if s := stoppedThreads(t, p.pid()); len(s) > 0 {
			t.Fatalf("still stopped: %v", s)
		}
	}
	t.Logf("it waited for up to %d threads", most)
	// All of them go on.
	before := accounts(t, p.pid())
	left := 0
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		left = 0
		for tid, ran := range accounts(t, p.pid()) {
			if int(tid) != p.pid() && ran == before[tid] {
				left++
			}
		}
		if left == 0 {
			return
		}
	}
	t.Errorf("%d threads do not go on", left)
}
