package engines

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
)

// recorder adds up what an engine delivers.
type recorder struct {
	weight  map[uint32]uint64
	count   map[uint32]int
	kinds   map[capture.ProcessEventKind]int
	samples int
	batches int
	bytes   int
	kernel  int
	flags   capture.Flags
	look    func(*capture.Snapshot)
}

func newRecorder() *recorder {
	return &recorder{weight: map[uint32]uint64{}, count: map[uint32]int{}, kinds: map[capture.ProcessEventKind]int{}}
}

func (r *recorder) Sample(s *capture.Snapshot) {
	r.weight[s.TID] += s.Weight
	r.count[s.TID]++
	r.samples++
	r.bytes += len(s.Stack)
	r.flags |= s.Flags
	if len(s.Kernel) > 0 {
		r.kernel++
	}
	if r.look != nil {
		r.look(s)
	}
}
func (r *recorder) Notice(n capture.ProcessEvent) { r.kinds[n.Kind]++ }
func (r *recorder) BatchEnd()                     { r.batches++ }

// start starts a program and waits for its first line of output.
func start(t testing.TB, argv ...string) *fixture.Program {
	t.Helper()
	p := fixture.Start(t, exec.Command(argv[0], argv[1:]...))
	p.Line()
	return p
}

func options(hz float64, pids ...int) capture.Options {
	period, _, _ := capture.ChooseRate(hz)
	return capture.Options{PIDs: pids, Period: period, Events: []capture.Event{{Name: "cpu", Unit: "nanoseconds"}}}
}

func open(t testing.TB, opts capture.Options, name string) capture.Engine {
	t.Helper()
	e, err := Open(opts, name)
	if errors.Is(err, capture.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// record runs an engine for d.
func record(t testing.TB, e capture.Engine, r capture.Sink, d time.Duration) {
	t.Helper()
	recordUntil(t, e, r, d, nil)
}

// recordUntil runs an engine for d and then, if done is not nil, until done is closed.
func recordUntil(t testing.TB, e capture.Engine, r capture.Sink, d time.Duration, done <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer time.AfterFunc(d, func() {
		if done != nil {
			<-done
		}
		cancel()
	}).Stop()
	if err := e.Run(ctx, r); err != nil {
		t.Fatal(err)
	}
}

// stopProcess stops a process and waits until each of its threads has stopped.
func stopProcess(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Errorf("stop process %d: %v", pid, err)
		return
	}
	deadline := time.Now().Add(time.Minute)
	for {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		running := 0
		for _, f := range files {
			b, err := os.ReadFile(f)
			_, state, ok := strings.Cut(string(b), ") ")
			if err == nil && ok && state[0] != 'T' && state[0] != 't' && state[0] != 'Z' {
				running++
			}
		}
		if running == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%d threads of process %d do not stop", running, pid)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// threadTimes returns the CPU time of each thread by the kernel's own account, in ns.
func threadTimes(t testing.TB, pid int) map[uint32]uint64 {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		t.Fatal(err)
	}
	times := map[uint32]uint64{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		tid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		ns, err := strconv.ParseUint(strings.Fields(string(b))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		times[uint32(tid)] = ns
	}
	return times
}

// workSource has two threads that work and enter the kernel. The first of them starts another one
// at the end of its input or at a line of it.
const workSource = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static void deep(int n) {
  volatile char pad[2000]; memset((void *)pad, n, sizeof pad);
  if (n > 0) { deep(n - 1); return; }
  for (;;) { struct stat s; for (volatile int i = 0; i < 20000; i++); stat("/proc/self/maps", &s); }
}
static void *work(void *arg) { deep((long)arg); return 0; }
int main() {
  pthread_t a, b;
  pthread_create(&a, 0, work, (void *)5);
  printf("ready\n"); fflush(stdout);
  getchar();
  pthread_create(&b, 0, work, (void *)3);
  deep(2);
}`

func TestEveryEngine(t *testing.T) {
	bin := fixture.C(t, workSource)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			p := start(t, bin)
			pid := p.PID()
			e := open(t, options(1000, pid), name)
			if e.Name() != name {
				t.Errorf("the engine %s calls itself %s", name, e.Name())
			}
			r := newRecorder()
			shallow := 0 // samples taken while the program starts its second thread
			// A thread's first touch of a page of its stack is a fault, and a sample within it
			// finds no page there; so does one while the kernel moves a page. The engine reports
			// that with a flag, and it happens to a few samples at most.
			holes := 0
			r.look = func(s *capture.Snapshot) {
				sp := s.Regs.SP()
				end := s.StackAddr + uint64(len(s.Stack))
				if s.Flags&capture.StackCut != 0 && end%4096 == 0 && end < s.StackTop && (name == "perf" || name == "perf-thread") {
					// The kernel's own copy ends before a page that it had taken out of the process
					// meanwhile; the engine reports that, and the walk goes on there.
					return
				}
				if name == "suspend" && s.Flags == capture.StackUnread|capture.NoUser && len(s.Stack) == 0 {
					return // time in which the thread ran and candid did not get to stop it
				}
				if s.Flags&capture.StackUnread != 0 && s.Flags&capture.InKernel != 0 && len(s.Stack) == 0 {
					// The very first touch, when a thread begins, is such a fault too: the kernel's
					// own copy is empty then.
					holes++
					return
				}
				if s.Flags&capture.StackHoles != 0 {
					holes++
				}
				if s.Flags&^(capture.InKernel|capture.StackHoles) != 0 || s.Regs.PC == 0 || s.StackAddr > sp || end != s.StackTop || end-sp > 64<<10 {
					t.Errorf("pc %x sp %x copy %x+%d top %x flags %x", s.Regs.PC, sp, s.StackAddr, len(s.Stack), s.StackTop, s.Flags)
				}
				if end-sp < 2000 {
					shallow++
				}
				if name != "suspend" && (len(s.Kernel) > 0) != (s.Flags&capture.InKernel != 0) {
					t.Errorf("flags %x with %d kernel frames", s.Flags, len(s.Kernel))
				}
			}
			// The program is stopped when sampling begins and ends, and while its accounts are
			// read: on a busy machine it would run for long between the two.
			stopProcess(t, pid)
			tooLittle := fixture.Watch(t)
			before, stolen := threadTimes(t, pid), fixture.StolenTime()
			time.AfterFunc(100*time.Millisecond, func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
			time.AfterFunc(200*time.Millisecond, func() { _, _ = p.Write([]byte("\n")) }) // the second thread
			stopped := make(chan struct{})
			time.AfterFunc(1900*time.Millisecond, func() { stopProcess(t, pid); close(stopped) })
			recordUntil(t, e, r, 2*time.Second, stopped)
			after := threadTimes(t, pid)
			stolen = fixture.StolenTime() - stolen
			for tid, end := range after {
				cpu := float64(end - before[tid])
				got := float64(r.weight[tid])
				// There are a dozen comparisons each time: 4.5 standard deviations occur once in
				// some 10,000 runs.
				limit := 4.5*math.Sqrt(cpu*1e6) + 10e6
				t.Logf("thread %d: %.1f ms sampled, %.1f ms accounted, %v taken by the host", tid, got/1e6, cpu/1e6, stolen)
				// The clock of the event goes on while the host runs other guests on the CPU; the
				// thread's account does not.
				// The kernel's clock misses threads that run for moments only, such as others that are
				// being stepped, and finds the rest too often. Its own copies of stacks show the same
				// then.
				if got-cpu > limit+float64(stolen) || cpu-got > limit {
					tooLittle("thread %d: %.1f ms sampled, %.1f ms accounted, limit %.1f", tid, got/1e6, cpu/1e6, limit/1e6)
				}
			}
			if shallow > 5 {
				t.Errorf("%d stacks are not as deep as their thread", shallow)
			}
			if holes > 5 {
				t.Errorf("%d of %d stacks have holes", holes, r.samples)
			}
			st := e.Stats()
			t.Logf("%s: %d samples of %d bytes, %d in the kernel, lost %d", e.Describe(), r.samples, r.bytes/max(1, r.samples), r.kernel, st.Lost)
			if len(after) != 3 || r.kinds[capture.Fork] != 1 || (r.kernel == 0) != (name == "suspend") || r.flags&capture.InKernel == 0 || st.Samples != uint64(r.samples) || st.Bytes != uint64(r.bytes) {
				t.Errorf("%d threads, notices %v, %d kernel samples, stats %+v", len(after), r.kinds, r.kernel, st)
			}
			// The engine ends when the target does.
			if err := p.Cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			const forever = 3 * time.Minute // unless it notices the end
			record(t, e, newRecorder(), forever)
			if d := time.Since(begin); d >= forever {
				t.Errorf("Run took %v after its target's end", d)
			}
		})
	}
}

// While a target does nothing batches end all the same: what is observed besides the samples is
// read then.
func TestIdleTarget(t *testing.T) {
	p := fixture.Start(t, exec.Command("sleep", "100"))
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			e := open(t, options(1000, p.PID()), name)
			r := newRecorder()
			ctx, cancel := context.WithTimeout(t.Context(), 5*capture.IdleBatch)
			defer cancel()
			if err := e.Run(ctx, r); err != nil {
				t.Fatal(err)
			}
			// The first batch may end before any interval has passed, and the last one with the
			// recording.
			if r.batches < 3 {
				t.Errorf("%d batches in %v", r.batches, 5*capture.IdleBatch)
			}
		})
	}
}

func TestUnknownEngine(t *testing.T) {
	if _, err := Open(options(99, os.Getpid()), "magic"); !errors.Is(err, ErrUnknown) {
		t.Errorf("engine magic: %v", err)
	}
}

func TestNoEngine(t *testing.T) {
	opts := options(99, os.Getpid())
	opts.Events[0] = capture.Event{Name: "cycles", Kind: capture.Counter, Unit: "count"}
	e, err := Open(opts, "auto")
	if err == nil {
		e.Close()
		t.Skip("this machine counts cycles")
	}
	if !errors.Is(err, capture.ErrNoEvent) && !errors.Is(err, capture.ErrPermission) || strings.Contains(err.Error(), "\n") {
		t.Errorf("cycles: %v", err)
	}
}

func TestNoSuchProcess(t *testing.T) {
	for _, name := range append(Names(), "auto") {
		if e, err := Open(options(99, 1<<22-1), name); err == nil {
			e.Close()
			t.Errorf("%s takes a process that is not there", name)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than a line: %v", name, err)
		}
	}
}
