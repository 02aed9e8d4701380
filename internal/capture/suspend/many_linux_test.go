package suspend

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/machine"
)

// Thousands of threads that wait cost little, and hide those that work from
// nobody; a stack that is deeper than what is copied is marked so.
func TestManyThreads(t *testing.T) {
	p := start(t, compile(t, "many"))
	if fds, _ := filepath.Glob("/proc/self/fd/*"); len(fds) > 1000 {
		t.Fatalf("%d descriptors are open already", len(fds))
	}
	e := open(t, options(99, p.pid()))
	c := newCounter()
	record(t, e, c, 500*time.Millisecond) // finds the threads
	const d = 4 * time.Second
	attempts(t, 8, func() (wrong, held string) {
		cut, c := 0, newCounter()
		c.look = func(s *capture.Snapshot) {
			if s.Flags&capture.StackCut != 0 && len(s.Stack) > 500<<10 {
				cut++
			}
		}
		used, own, late := cpuClock(p.pid()), machine.OwnCPU(), e.Stats().Throttled
		record(t, e, c, d)
		used, own = cpuClock(p.pid())-used, machine.OwnCPU()-own
		held = heldBack(e, late, d)
		var all uint64
		for _, w := range c.weight {
			all += w
		}
		t.Logf("%d samples of %d threads for %v of %v; %v of CPU; %+v", c.samples, len(c.weight), time.Duration(all), time.Duration(used), own, e.Stops())
		switch s := e.Stops(); {
		case s.Unfollowed > 0:
			t.Errorf("there was no descriptor for %d threads", s.Unfollowed)
		case all > used*12/10:
			t.Errorf("samples stand for %v, the process used %v", time.Duration(all), time.Duration(used))
		// Asking all of them at each tick would take more than a CPU. Finding them again
		// and half a megabyte of stack for every other sample are in it, which a machine
		// with slow memory may take twice as long for as another. No crowd makes it more.
		case own > d/2:
			return fmt.Sprintf("%v of CPU in %v", own, d), ""
		case c.samples < 20:
			return fmt.Sprintf("%d samples, %+v", c.samples, s), held
		case all < used*8/10:
			return fmt.Sprintf("samples stand for %v, the process used %v", time.Duration(all), time.Duration(used)), held
		case cut < 5:
			return fmt.Sprintf("%d samples of the deep stack", cut), held
		}
		return "", held
	})
	p.end()
}
