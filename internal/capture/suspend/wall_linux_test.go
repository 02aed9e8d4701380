package suspend

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/procsyscall"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/target"
)

// wallSink adds up wall time by thread, and by the call that each thread sleeps in.
type wallSink struct {
	*counter
	calls map[uint32]map[uint32]uint64 // by TID, then by Snapshot.Syscall
	last  map[uint32]capture.Snapshot  // the last sample with a stack
	again int
	deaf  time.Time // until then it knows no sleep
}

func newWallSink() *wallSink {
	s := &wallSink{counter: newCounter(), calls: map[uint32]map[uint32]uint64{}, last: map[uint32]capture.Snapshot{}}
	s.look = func(snap *capture.Snapshot) {
		s.add(snap, snap.Syscall)
		s.last[snap.TID] = *snap
	}
	return s
}

func (s *wallSink) add(snap *capture.Snapshot, call uint32) {
	if snap.State == capture.Running || snap.State == capture.Runnable {
		call = 0
	}
	if s.calls[snap.TID] == nil {
		s.calls[snap.TID] = map[uint32]uint64{}
	}
	s.calls[snap.TID][call] += snap.Weight
}

func (s *wallSink) Again(snap *capture.Snapshot) (taken, want bool) {
	known := s.last[snap.TID]
	if time.Now().Before(s.deaf) || known.Sleep == 0 || known.Sleep != snap.Sleep {
		return false, true
	}
	s.again++
	s.weight[snap.TID] += snap.Weight
	s.add(snap, known.Syscall)
	return true, false
}

func wallOptions(hz float64, pids ...int) capture.Options {
	o := options(hz, pids...)
	o.Events = []capture.Event{{Name: "wall", Kind: capture.Wall, Unit: "nanoseconds"}}
	return o
}

// A thread that rarely changes its place among many others is shown where it is, and all others'
// time is reported completely, also to a sink that forgets.
func TestWallOfCrowd(t *testing.T) {
	bin := compile(t, "crowd")
	open(t, wallOptions(99, os.Getpid())).Close() // skips if it is not permitted
	for _, deaf := range []bool{false, true} {
		fixture.Attempts(t, 6, func() string { return wallOfCrowd(t, bin, deaf) })
	}
}

// wallOfCrowd returns how the crowd's wall time differs from the truth.
func wallOfCrowd(t *testing.T, bin string, deaf bool) string {
	p := start(t, bin)
	defer p.Kill()
	e := open(t, wallOptions(99, p.pid()))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, ended := newWallSink(), make(chan error, 1)
	if deaf {
		c.deaf = time.Now().Add(time.Second)
	}
	seen, look := make(chan bool), c.look
	c.look = func(s *capture.Snapshot) {
		if look(s); len(c.calls) > 1000 && seen != nil {
			close(seen)
			seen = nil
		}
	}
	late := lateness()
	defer late()
	all1000 := seen
	go func() { ended <- e.Run(ctx, c) }()
	select {
	case <-all1000:
	case <-time.After(2 * time.Minute):
		t.Fatal("the thousand threads are not seen")
	}
	if _, err := io.WriteString(p, "x"); err != nil {
		t.Fatal(err)
	}
	p.Line()
	time.Sleep(4500 * time.Millisecond)
	var naps, selects uint64
	if _, err := fmt.Sscan(p.end(), &naps, &selects); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	waited := late()
	// The time of each thread counts from when the engine started with it, which takes long if the
	// engine gets no CPU.
	all := map[uint32]time.Duration{}
	e.scanner.each(func(sl *sleeper) { all[uint32(sl.th.tid)] = time.Duration(e.scanner.end - sl.began) })
	wanderers := 0
	for tid, calls := range c.calls {
		slept := calls[unix.SYS_CLOCK_NANOSLEEP+1]
		if slept == 0 {
			if got := time.Duration(c.weight[tid]); got > all[tid] || got < all[tid]*95/100 || all[tid] < 4*time.Second {
				return fmt.Sprintf("thread %d: %v of wall time in %v: %v", tid, got, all[tid], calls)
			}
			continue
		}
		wanderers++
		other := calls[unix.SYS_PSELECT6+1] + calls[selectCall+1]
		t.Logf("deaf %v: napped %v, selected %v; truth %v, %v; %d samples, %d again; candid waited %v for a CPU", deaf, time.Duration(slept), time.Duration(other),
			time.Duration(naps), time.Duration(selects), c.samples, c.again, waited)
		// The total is 5.6 s; while candid has no CPU it cannot see where a thread has gone.
		most := int64(400*time.Millisecond + waited)
		if d := int64(slept) - int64(naps); d < -most || d > most {
			return fmt.Sprintf("it napped %v, not %v", time.Duration(naps), time.Duration(slept))
		}
		if d := int64(other) - int64(selects); d < -most || d > most {
			return fmt.Sprintf("it was in select for %v, not %v", time.Duration(selects), time.Duration(other))
		}
	}
	if wanderers != 1 || len(c.calls) < 1002 {
		return fmt.Sprintf("%d threads napped of %d", wanderers, len(c.calls))
	}
	if !deaf && c.again < 1000 {
		return fmt.Sprintf("%d sleeps were repeated", c.again)
	}
	return ""
}

// Thousands of threads that do not run cost next to nothing: none is stopped, its stack is read
// once, its account at most once per period, and what is known of it is repeated a few times at
// most. How long that takes is measured by BenchmarkIdleThreads, and here in make test-full.
func TestIdleThreadsAreCheap(t *testing.T) {
	const threads, hz, d = 1001, 20, 3 * time.Second
	p := start(t, compile(t, "crowd"))
	e := open(t, wallOptions(hz, p.pid()))
	c := newWallSink()
	record(t, e, c, time.Second) // attaches to the threads
	known, before, stops, reads := c.again, c.samples, e.Stops().Count, readCalls(t)
	begin := time.Now()
	record(t, e, c, d)
	known, before, stops, reads = c.again-known, c.samples-before, e.Stops().Count-stops, readCalls(t)-reads
	long := time.Since(begin)
	t.Logf("%d samples, %d that are known, %d stops and %d reads in %v for %d threads", before, known, stops, reads, long, threads)
	// Reading the counts is a read call too, and so is keeping the nice level.
	if most := int(threads*hz*long.Seconds()) + threads; stops != 0 || before > threads || known > 7*threads || reads > most {
		t.Errorf("%d samples, %d that are known, %d stops and %d reads of at most %d", before, known, stops, reads, most)
	}
	if before < threads-1 {
		t.Errorf("%d samples of %d threads", before, threads)
	}
	if !fixture.Full(t) {
		return
	}
	fixture.Attempts(t, 5, func() string {
		own := hostinfo.OwnCPU()
		record(t, e, c, d)
		own = hostinfo.OwnCPU() - own
		if own > d*15/100 {
			return fmt.Sprintf("%v of CPU in %v", own, d)
		}
		return ""
	})
}

// The accounts that the engine keeps open agree with the kernel's files.
func TestCPUTimesOfCrowd(t *testing.T) {
	p := start(t, compile(t, "crowd"))
	e := open(t, wallOptions(99, p.pid()))
	proc, err := target.Open(p.pid())
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	for tid := range times(t, proc) {
		for {
			if place, ok := procsyscall.Of(p.pid(), tid); ok && place.Call == unix.SYS_READ && !place.Running {
				break // it has reached the place where it stays
			}
			time.Sleep(time.Millisecond)
		}
	}
	compare := func(when string) {
		t.Helper()
		want := times(t, proc)
		if got := e.CPUTimes(p.pid()); len(got) < 1001 || !maps.Equal(got, want) {
			t.Errorf("%s: %d threads, not %d, or other times", when, len(got), len(want))
		}
	}
	compare("before recording")
	// At first the threads that have run may still have to be found; after that it is known of all
	// of them at once that they sleep.
	for _, d := range []time.Duration{time.Millisecond, time.Second} {
		record(t, e, newWallSink(), d)
		compare(fmt.Sprintf("after %v", d))
	}
}

func times(t *testing.T, p *target.Process) map[int]uint64 {
	t.Helper()
	ns, err := target.CPUTimes(p)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// A thread that runs after none did for long is found.
func TestFoundAfterRest(t *testing.T) {
	for _, opts := range []capture.Options{options(99), wallOptions(20)} {
		p := start(t, "sh", "-c", "echo ready; read word; while :; do :; done")
		opts.PIDs = []int{p.pid()}
		e := open(t, opts)
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
		defer stop()
		c := newCounter()
		ran := time.Duration(0)
		c.look = func(s *capture.Snapshot) {
			if s.State != capture.Running {
				return
			}
			if ran += time.Duration(s.Weight); ran > 300*time.Millisecond {
				stop()
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx, c) }()
		for resting(e) < len(e.cpus) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		p.CloseInput()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if ran < 300*time.Millisecond {
			t.Errorf("%s: of what it ran %v were seen", opts.Events[0].Name, ran)
		}
		p.Kill()
	}
}

// While candid gets no CPU, a thread that it has stopped stays stopped. That time is not part of
// the next sleep.
func TestStandingStillIsNoSleep(t *testing.T) {
	p := start(t, compile(t, "turns"))
	e := open(t, wallOptions(499, p.pid()))
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	var napped, stood time.Duration
	var begin, enough sync.Once
	begun, said := make(chan bool), make(chan string, 1)
	c := newCounter()
	c.look = func(s *capture.Snapshot) {
		begin.Do(func() {
			_, _ = io.WriteString(p, "x")
			close(begun)
		})
		switch {
		case s.State != capture.Sleeping:
		case s.Syscall == unix.SYS_CLOCK_NANOSLEEP+1:
			napped += time.Duration(s.Weight)
		case s.Syscall == 0:
			stood += time.Duration(s.Weight)
		}
		if stood > time.Second {
			enough.Do(func() {
				_, _ = io.WriteString(p, "x")
				said <- p.Line()
				stop()
			})
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx, c) }()
	select {
	case <-begun:
	case <-ctx.Done():
		t.Fatal("no samples")
	}
	// The code that stops threads and copies their stacks is delayed now and then, and the code
	// that looks at those that sleep a little longer.
	for ctx.Err() == nil {
		e.scanner.mu.Lock()
		for _, l := range e.list {
			l.mu.Lock()
		}
		time.Sleep(20 * time.Millisecond)
		for _, l := range e.list {
			l.mu.Unlock()
		}
		time.Sleep(8 * time.Millisecond)
		e.scanner.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if len(said) == 0 {
		t.Fatalf("it stood still for %v only", stood)
	}
	var naps int64
	if _, err := fmt.Sscan(<-said, &naps); err != nil {
		t.Fatal(err)
	}
	t.Logf("it stood still for %v, and napped for %v of %v", stood, napped, time.Duration(naps))
	if more := napped - time.Duration(naps); more > stood/5 {
		t.Errorf("it napped for %v, not %v", time.Duration(naps), napped)
	}
}

// resting returns on how many CPUs the sampling threads wait for a thread to look at.
func resting(e *Engine) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.list {
		if l.rests.Load() {
			n++
		}
	}
	return n
}

// A process that has ended does not count as asleep until its parent reaps it.
func TestEndedProcessDoesNotSleep(t *testing.T) {
	p := start(t, "sh", "-c", "echo ready; read word")
	e := open(t, wallOptions(1000, p.pid()))
	c := newCounter()
	samples := 0
	c.look = func(s *capture.Snapshot) {
		if samples++; samples == 1 {
			p.CloseInput() // the process is reaped when the test ends
		}
		if s.Regs.SP() == 0 {
			t.Errorf("a sample of %v without a stack, %v", time.Duration(s.Weight), s.State)
		}
	}
	record(t, e, c, time.Minute)
	if samples == 0 {
		t.Error("no samples")
	}
}

// readCalls returns how many read system calls this process has made.
func readCalls(t *testing.T) (n int) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(raw[bytes.Index(raw, []byte("syscr:")):]), "syscr: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
