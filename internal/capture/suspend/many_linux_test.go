package suspend

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/priority"
)

// Thousands of threads that wait cost little and do not hide those that work; a stack that is
// deeper than what is copied is marked as cut.
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
		used, own, late := cpuClock(p.pid()), hostinfo.OwnCPU(), e.Stats().Throttled
		record(t, e, c, d)
		used, own = cpuClock(p.pid())-used, hostinfo.OwnCPU()-own
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
		// Looking at all of them at each tick would take more than a CPU. The limit covers finding
		// them again and half a megabyte of stack for every other sample, which may take twice as
		// long on a machine with slow memory. A crowd does not make it more.
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

// fewDescriptors limits this process to n descriptors until the test ends.
func fewDescriptors(t *testing.T, n uint64) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		t.Fatal(err)
	}
	few := lim
	few.Cur = n
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &lim) })
}

// If many more threads run than there are descriptors, the files for their samples leave some
// descriptors for writing the recording, and no thread counts as ended.
func TestDescriptorsAreLeft(t *testing.T) {
	p := start(t, compile(t, "queue"))
	fewDescriptors(t, 200)
	defer priority.Keep(func(priority.Report) {})()
	e := open(t, options(500, p.pid()))
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	c := newCounter()
	const enough = 12
	var failed error
	c.look = func(*capture.Snapshot) {
		for range spareFiles / 2 {
			fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				failed = err
				break
			}
			defer unix.Close(fd)
		}
		if failed != nil || len(c.weight) >= enough {
			stop()
		}
	}
	if err := e.Run(ctx, c); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d samples of %d threads, %v", c.samples, len(c.weight), c.kinds)
	if failed != nil {
		t.Errorf("no %d descriptors are left: %v", spareFiles/2, failed)
	}
	if n := c.kinds[capture.Exit]; n > 0 {
		t.Errorf("%d threads are told to have ended", n)
	}
	if len(c.weight) < enough && failed == nil {
		t.Errorf("samples of %d threads", len(c.weight))
	}
}

// If there are fewer descriptors than a process has threads, some threads are sampled and the
// counts say for how many there are none. Failing to list the threads for want of a descriptor does
// not count as the process's end.
func TestFewDescriptors(t *testing.T) {
	p := start(t, compile(t, "crowd"))
	fewDescriptors(t, 400)
	e := open(t, wallOptions(99, p.pid()))
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	c := newCounter()
	c.look = func(*capture.Snapshot) {
		if len(c.weight) >= 100 {
			stop()
		}
	}
	if err := e.Run(ctx, c); err != nil {
		t.Fatal(err)
	}
	s, notes, followed := e.Stops(), strings.Join(e.Notes(), "\n"), len(e.procs[p.pid()].threads)
	t.Logf("samples of %d threads, %d followed, %d not: %s", len(c.weight), followed, s.Unfollowed, notes)
	const all = 1001
	if len(c.weight) < 100 || followed+int(s.Unfollowed) != all {
		t.Errorf("samples of %d threads; %d followed and %d not of %d", len(c.weight), followed, s.Unfollowed, all)
	}
	if want := fmt.Sprintf("%d threads were not sampled", s.Unfollowed); !strings.Contains(notes, want) || !strings.Contains(notes, "ulimit -n") {
		t.Errorf("it says %q", notes)
	}
}
