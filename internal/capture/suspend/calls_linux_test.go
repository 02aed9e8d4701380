package suspend

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// callSeconds is how long the calls are watched; CANDID_CALLS_SECONDS asks for more.
func callSeconds(t *testing.T) time.Duration {
	if s := os.Getenv("CANDID_CALLS_SECONDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(n) * time.Second
	}
	return 10 * time.Second
}

func TestNoCallIsBroken(t *testing.T) {
	bin := compile(t, "calls")
	for _, rounds := range []string{"0", "100000", "10000000"} {
		p := start(t, bin, rounds)
		e := open(t, options(1000, p.pid()))
		c := newCounter()
		record(t, e, c, callSeconds(t)/3)
		said := p.end()
		var broken, calls int
		if _, err := fmt.Sscanf(said, "%d of %d broken", &broken, &calls); err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		s := e.Stops()
		t.Logf("work of %s rounds: %d samples, %+v\n%s", rounds, c.samples, s, said)
		if broken > 0 || s.BrokenCalls > 0 {
			t.Errorf("%d of %d calls were broken, the engine saw %d", broken, calls, s.BrokenCalls)
		}
		if c.samples == 0 && rounds == "10000000" || calls == 0 {
			t.Errorf("%d samples, %d calls", c.samples, calls)
		}
	}
}

// The program of TestNoCallIsBroken notices threads that are stopped whatever
// they do.
func TestBlindStopsBreakCalls(t *testing.T) {
	p := start(t, compile(t, "calls"), "0")
	noStopSignals()
	done := make(chan struct{})
	go onOwnThread(func() {
		defer close(done)
		for range 50 {
			tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.pid()))
			for _, task := range tasks {
				tid, _ := strconv.Atoi(filepath.Base(task))
				if seize(tid) != 0 || interrupt(tid) != 0 {
					continue
				}
				if got, s, errno := waitAny(); errno == 0 {
					_ = release(got, s.signal)
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
	<-done
	said := p.end()
	var broken, calls int
	if _, err := fmt.Sscanf(said, "%d of %d broken", &broken, &calls); err != nil {
		t.Fatalf("%q: %v", said, err)
	}
	t.Log(said)
	if broken == 0 {
		t.Errorf("no call was broken: the program does not notice what it should")
	}
	if unix.Kill(p.pid(), 0) != nil {
		t.Error("the program is gone")
	}
}
