package suspend

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// moves returns how often a thread was moved to another CPU.
func moves(t *testing.T, tid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/sched", tid))
	if err != nil {
		t.Skipf("the kernel keeps no account of moves: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "se.nr_migrations" {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Skip("the kernel keeps no account of moves")
	return 0
}

// If another CPU is idle, a thread that is sampled stays where it is.
func TestSamplesDoNotMoveThreads(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("there is one CPU only")
	}
	pid := start(t, compile(t, "spin")).pid()
	// On a busy machine the kernel moves threads for reasons of its own, and a sampling thread has
	// nowhere to go.
	fixture.Attempts(t, 25, func() string {
		e := open(t, options(200, pid))
		c := newCounter()
		before := moves(t, pid)
		record(t, e, c, 2*time.Second)
		moved := moves(t, pid) - before
		t.Logf("%d samples, moved %d times", c.samples, moved)
		if c.samples > 40 && moved < c.samples/3 {
			return ""
		}
		return fmt.Sprintf("%d samples moved the thread %d times", c.samples, moved)
	})
}
