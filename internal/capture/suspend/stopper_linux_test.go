package suspend

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// A running thread is copied, a sleeping one is left alone, and one whose process is stopped is
// copied and stays stopped.
func TestStopper(t *testing.T) {
	p := start(t, compile(t, "spin"))
	pid := p.pid()
	s, err := NewStopper(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var longest time.Duration
	copied, all, stood := 0, 0, stopCounts{}
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
	if all = copied; all < 100 {
		t.Errorf("only %d of 200 tries gave a copy", all)
	}
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, pid, 'T')
	for range 10 {
		copied = 0
		if left := s.Copy([]int{pid}, func(*capture.Snapshot, time.Duration) { copied++ }); copied != 1 || len(left) > 0 {
			t.Fatalf("of the stopped process %d were copied: %v", copied, left)
		}
		// On its way back the thread runs in the kernel for a moment.
		await(t, pid, 'T')
	}
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, pid, 'R')
	t.Logf("%d of 200 copied; it stood still %v at the median, %v at most", all, stood.quantile(0.5), longest)
}

// await waits until a process is in the state.
func await(t *testing.T, pid int, state byte) {
	t.Helper()
	var s status
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if s, _ = parseStatus(b); err != nil || s.state == state {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the state of the process is %c, not %c", s.state, state)
}

// No thread notices that it was copied: of calls that wait in every way not one is interrupted.
func TestStopperBreaksNoCall(t *testing.T) {
	for _, rounds := range []string{"0", "100000"} {
		p := start(t, compile(t, "calls"), rounds)
		s, err := NewStopper(p.pid())
		if err != nil {
			t.Fatal(err)
		}
		copied := 0
		for end := time.Now().Add(callSeconds(t) / 4); time.Now().Before(end); {
			tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.pid()))
			tids := make([]int, 0, len(tasks))
			for _, task := range tasks {
				tid, _ := strconv.Atoi(filepath.Base(task))
				tids = append(tids, tid)
			}
			s.Copy(tids, func(*capture.Snapshot, time.Duration) { copied++ })
		}
		s.Close()
		said := p.end()
		var broken, calls int
		if _, err := fmt.Sscanf(said, "%d of %d broken", &broken, &calls); err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		t.Logf("work of %s rounds: %d copied\n%s", rounds, copied, said)
		if broken > 0 || copied == 0 || calls == 0 {
			t.Errorf("%d of %d calls were broken, %d copies", broken, calls, copied)
		}
	}
}
