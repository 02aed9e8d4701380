package suspend

import (
	"errors"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
)

// A thread that runs is copied, one that sleeps is left alone, and one whose
// process is stopped is copied and stays stopped.
func TestStopper(t *testing.T) {
	p := start(t, compile(t, "spin"))
	pid := p.cmd.Process.Pid
	s, err := NewStopper(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var longest time.Duration
	copied, stood := 0, stopCounts{}
	for range 200 {
		left := s.Copy([]int{pid}, func(snap *capture.Snapshot, d time.Duration) {
			if snap.Regs.PC == 0 || len(snap.Stack) == 0 || snap.StackTop == 0 || snap.TID != uint32(pid) {
				t.Errorf("a copy without content: %+v", snap)
			}
			copied++
			stood.add(int64(d))
			longest = max(longest, d)
		})
		if err := left[pid]; err != nil && !errors.Is(err, ErrElusive) {
			t.Fatal(err)
		}
	}
	if copied < 100 {
		t.Errorf("only %d of 200 tries gave a copy", copied)
	}
	t.Logf("%d of 200 copied; it stood still %v at the median, %v at most", copied, stood.quantile(0.5), longest)
}
