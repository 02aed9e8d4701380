package suspend

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture/procsyscall"
)

// callSeconds returns how long the calls are watched; CANDID_CALLS_SECONDS sets more.
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
	for _, how := range []string{"0", "100000", "10000000", "10000000 wary", "10000000 blind", "0 wall", "10000000 wall"} {
		rounds, how, _ := strings.Cut(how, " ")
		p := start(t, bin, rounds)
		opts := options(1000, p.pid())
		if how == "wall" {
			opts = wallOptions(1000, p.pid())
		}
		e := open(t, opts)
		e.wary = e.wary || how == "wary"
		e.blind = how == "blind"
		c := newCounter()
		record(t, e, c, callSeconds(t)/7)
		said := p.end()
		var broken, calls int
		if _, err := fmt.Sscanf(said, "%d of %d broken", &broken, &calls); err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		s := e.Stops()
		t.Logf("work of %s rounds, %s: %d samples, %+v\n%s", rounds, how, c.samples, s, said)
		if broken > 0 || s.BrokenCalls > 0 {
			t.Errorf("%d of %d calls were broken, the engine saw %d", broken, calls, s.BrokenCalls)
		}
		if c.samples == 0 || calls == 0 {
			t.Errorf("%d samples, %d calls", c.samples, calls)
		}
	}
}

// stopBlindly stops every thread of the program again and again, whatever the thread does, and
// returns what the program reports.
func stopBlindly(t *testing.T, each func(tid int)) (broken, calls int) {
	t.Helper()
	p := start(t, compile(t, "calls"), "0")
	prepareSignals()
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
				if s, errno := waitStop(tid, false); errno == 0 {
					each(tid)
					_ = release(tid, s.signal)
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
	<-done
	said := p.end()
	if _, err := fmt.Sscanf(said, "%d of %d broken", &broken, &calls); err != nil {
		t.Fatalf("%q: %v", said, err)
	}
	t.Log(said)
	return broken, calls
}

// The program of TestNoCallIsBroken notices threads that are stopped at arbitrary places.
func TestBlindStopsBreakCalls(t *testing.T) {
	if broken, _ := stopBlindly(t, func(int) {}); broken == 0 {
		t.Errorf("no call was broken: the program does not notice what it should")
	}
}

// The same stops break no call if the calls are mended.
func TestMendedCallsGoOn(t *testing.T) {
	if !mends {
		t.Skip("calls cannot be mended on this processor")
	}
	mended := 0
	broken, calls := stopBlindly(t, func(tid int) {
		var w words
		if errno := w.read(tid); errno != 0 {
			t.Error(errno)
		} else if _, b := w.inCall(); b {
			if !w.mend(tid) {
				t.Error("a call was not mended")
			}
			mended++
		}
	})
	if broken > 0 || mended < 100 {
		t.Errorf("%d of %d calls were broken, %d mended", broken, calls, mended)
	}
}

// A signal interrupts a mended call as it would any other.
func TestSignalBreaksMendedCall(t *testing.T) {
	if !mends {
		t.Skip("calls cannot be mended on this processor")
	}
	p := start(t, compile(t, "waits"))
	// A second signal of a kind is lost if the first is still pending.
	pending := func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
		_, after, ok := strings.Cut(string(b), "ShdPnd:")
		var set uint64
		_, scanErr := fmt.Sscanf(after, "%x", &set)
		return err == nil && ok && scanErr == nil && set != 0
	}
	waits := func() {
		for {
			taken := !pending() // checked first: the signal is handled next
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.pid()))
			if place, ok := procsyscall.Parse(b); err != nil || !ok || taken && !place.Running && place.Call != procsyscall.NoCall {
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
	}
	done := make(chan error)
	go onOwnThread(func() {
		var w words
		for range 20 {
			waits()
			if errno := seize(p.pid()); errno != 0 {
				done <- errno
				return
			}
			_ = interrupt(p.pid())
			s, _ := waitStop(p.pid(), false)
			if errno := w.read(p.pid()); errno != 0 {
				done <- errno
				return
			}
			if _, b := w.inCall(); !b || !w.mend(p.pid()) {
				done <- errors.New("the call was not broken by the stop, or not mended")
				return
			}
			// The signal comes now while the thread is stopped on its way out, and the next time in
			// the call.
			_ = unix.Kill(p.pid(), unix.SIGUSR1)
			_ = release(p.pid(), s.signal)
			waits()
			_ = unix.Kill(p.pid(), unix.SIGUSR1)
			waits() // otherwise the end of input may come before it
		}
		done <- nil
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if said := p.end(); said != "40 handled 40 broken 0 ended" {
		t.Errorf("%q", said)
	}
}
