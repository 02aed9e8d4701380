package bpfcopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/target"
)

// command is exec.Command for a list.
func command(argv ...string) *exec.Cmd { return exec.Command(argv[0], argv[1:]...) }

// forever is how long a recording runs that does not notice its end.
const forever = 3 * time.Minute

// startGated starts a shell that goes on with the script when released, so that
// it is a target before it starts anything.
func startGated(t testing.TB, script string) (cmd *exec.Cmd, release func()) {
	t.Helper()
	cmd = command("sh", "-c", "read go; "+script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	favour(cmd.Process.Pid)
	return cmd, func() { _, _ = io.WriteString(in, "\n") }
}

// threadsSource has threads that work different shares of the time, each in pieces of 1 ms.
const threadsSource = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static long now() { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static void *work(void *arg) {
  long busy = (long)arg;
  for (;;) { long end = now() + busy; while (now() < end); usleep(3000); }
}
int main() {
  pthread_t t;
  for (long i = 1; i <= 3; i++) pthread_create(&t, 0, work, (void *)(i * 900000));
  printf("ready\n"); fflush(stdout);
  work((void *)500000);
}`

func TestThreadsAgainstTheKernelsAccount(t *testing.T) {
	bin := compile(t, threadsSource)
	for _, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			pid, _ := startReady(t, bin)
			e := open(t, cpuOptions(1000, pid), v)
			r := newRecorder()
			before := threadTimes(t, pid)
			record(t, e, r, 3*time.Second)
			after := threadTimes(t, pid)
			if len(after) != 4 {
				t.Fatalf("%d threads", len(after))
			}
			for tid, end := range after {
				cpu := float64(end - before[tid])
				got := float64(r.weight[uint32(tid)])
				// Four standard deviations of the count, which chance exceeds once in 2,000 runs of
				// this test, and the milliseconds around the recording.
				limit := 4*math.Sqrt(cpu*1e6) + 5e6
				t.Logf("thread %d: %.1f ms sampled, %.1f ms accounted, %d samples", tid, got/1e6, cpu/1e6, r.byTID[uint32(tid)])
				if math.Abs(got-cpu) > limit {
					t.Errorf("thread %d: %.1f ms sampled, %.1f ms accounted, limit %.1f", tid, got/1e6, cpu/1e6, limit/1e6)
				}
			}
		})
	}
}

// shortSource has threads that burn 3 ms and end, beside a first thread that burns as much.
const shortSource = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static long now() { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static void *burn(void *arg) { long end = now() + 3000000; while (now() < end); return 0; }
int main() {
  printf("ready\n"); fflush(stdout);
  for (;;) { pthread_t t; pthread_create(&t, 0, burn, 0); pthread_join(t, 0); burn(0); }
}`

func TestThreadsThatLiveThreeMilliseconds(t *testing.T) {
	pid, _ := startReady(t, compile(t, shortSource))
	r := newRecorder()
	tooLittle := fixture.Watch(t)
	record(t, open(t, cpuOptions(99, pid), Auto), r, 5*time.Second)
	total, short := uint64(0), uint64(0)
	for tid, w := range r.weight {
		total += w
		if int(tid) != pid {
			short += w
		}
	}
	share := float64(short) / float64(total)
	limit := 4 * math.Sqrt(0.25/float64(r.samples))
	t.Logf("%d samples, share of the short threads %.3f ± %.3f", r.samples, share, limit)
	if r.samples < 10 {
		tooLittle("only %d samples were taken in 5 s at 99 Hz", r.samples)
	} else if math.Abs(share-0.5) > limit+0.03 {
		t.Errorf("short threads have %.3f of %d samples, want half ± %.3f", share, r.samples, limit+0.03)
	}
	forks, exits := 0, 0
	for _, n := range r.notices {
		switch n.Kind {
		case capture.Fork:
			forks++
			if int(n.PID) != pid || int(n.Parent) != pid || int(n.TID) == pid {
				t.Fatalf("notice %+v", n)
			}
		case capture.Exit:
			exits++
		}
	}
	if forks < 10 || exits < forks-1 || exits > forks+1 {
		t.Errorf("%d threads started, %d ended", forks, exits)
	}
}

func TestChildren(t *testing.T) {
	burn := compile(t, `#include <time.h>
int main() { while (clock() < CLOCKS_PER_SEC / 5); }`)
	for _, children := range []bool{true, false} {
		cmd, release := startGated(t, burn+"; "+burn+"; exit 0")
		opts := cpuOptions(1000, cmd.Process.Pid)
		opts.Children = children
		r := newRecorder()
		begin := time.Now()
		e := open(t, opts, Auto)
		time.AfterFunc(100*time.Millisecond, release)
		record(t, e, r, forever)
		if d := time.Since(begin); d >= forever {
			t.Errorf("Run took %v after its targets had ended", d)
		}
		var ns uint64
		for tid, w := range r.weight {
			if int(tid) != cmd.Process.Pid {
				ns += w
			}
		}
		t.Logf("children %v: %d ms of them", children, ns/1e6)
		execs := 0
		for _, n := range r.notices {
			if n.Kind == capture.Exec && n.Comm == "prog" {
				execs++
			}
		}
		switch {
		case children && (ns < 350e6 || ns > 480e6 || execs != 2):
			t.Errorf("%d ms of two children that burn 200 ms each, %d execs", ns/1e6, execs)
		case !children && (ns != 0 || execs != 0):
			t.Errorf("%d ms, %d execs of children that nobody asked for", ns/1e6, execs)
		}
	}
}

func TestExecAndEnd(t *testing.T) {
	burn := compile(t, `#include <time.h>
int main() { while (clock() < CLOCKS_PER_SEC / 5); }`)
	cmd, release := startGated(t, "exec "+burn)
	r := newRecorder()
	begin := time.Now()
	e := open(t, cpuOptions(1000, cmd.Process.Pid), Auto)
	time.AfterFunc(100*time.Millisecond, release)
	record(t, e, r, forever)
	if d := time.Since(begin); d >= forever {
		t.Errorf("Run took %v after its target had ended", d)
	}
	var kinds [8]int
	for i, n := range r.notices {
		kinds[n.Kind]++
		if i > 0 && n.Time < r.notices[i-1].Time {
			t.Errorf("notice %+v after %+v", n, r.notices[i-1])
		}
	}
	if kinds[capture.Exec] != 1 || kinds[capture.Exit] != 1 || kinds[capture.Mmap] == 0 {
		t.Errorf("notices %+v", r.notices)
	}
	if got := r.weight[uint32(cmd.Process.Pid)]; got < 180e6 || got > 260e6 {
		t.Errorf("%d ms of 200", got/1e6)
	}
}

// The last notice of a target reports how it ended.
func TestHowTargetsEnd(t *testing.T) {
	for script, want := range map[string]target.Outcome{
		"exit 0":              {Known: true},
		"exit 7":              {Known: true, Code: 7},
		"kill -9 $$":          {Known: true, Signal: unix.SIGKILL},
		"kill -SEGV $$":       {Known: true, Signal: unix.SIGSEGV},
		"exec sh -c 'exit 4'": {Known: true, Code: 4},
	} {
		t.Run(script, func(t *testing.T) {
			cmd, release := startGated(t, script)
			e := open(t, cpuOptions(99, cmd.Process.Pid), Auto)
			release()
			r := newRecorder()
			record(t, e, r, time.Minute)
			last := r.notices[len(r.notices)-1]
			if last.Kind != capture.Exit || !last.Last || last.Outcome != want {
				t.Errorf("told %+v, want %+v", last, want)
			}
		})
	}
}

// The first thread need not be the one that ends the process.
func TestHowHeadlessTargetEnds(t *testing.T) {
	bin := compile(t, `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *end(void *arg) { usleep(100000); exit(9); }
int main() { pthread_t t; pthread_create(&t, 0, end, 0); pthread_exit(0); }`)
	cmd, release := startGated(t, "exec "+bin)
	e := open(t, cpuOptions(99, cmd.Process.Pid), Auto)
	release()
	r := newRecorder()
	record(t, e, r, time.Minute)
	if last := r.notices[len(r.notices)-1]; !last.Last || last.Outcome != (target.Outcome{Known: true, Code: 9}) {
		t.Errorf("told %+v", last)
	}
}

func TestKilledTarget(t *testing.T) {
	prog := startProg(t, compile(t, spinSource))
	e := open(t, cpuOptions(1000, prog.Process.Pid), Auto)
	time.AfterFunc(300*time.Millisecond, func() { _ = prog.Process.Kill() })
	r := newRecorder()
	begin := time.Now()
	record(t, e, r, forever)
	if d := time.Since(begin); d >= forever || r.samples == 0 {
		t.Errorf("Run took %v, %d samples", d, r.samples)
	}
}

func TestCancel(t *testing.T) {
	prog := startProg(t, "sleep", "1000")
	defer time.AfterFunc(forever, func() { _ = prog.Process.Kill() }).Stop()
	e := open(t, cpuOptions(99, prog.Process.Pid), Auto)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	if err := e.Run(ctx, newRecorder()); err != nil || time.Since(begin) >= forever {
		t.Errorf("Run: %v after %v", err, time.Since(begin))
	}
}

func TestNoSuchProcess(t *testing.T) {
	e, err := Open(cpuOptions(99, 1<<22-1), Auto)
	if err == nil {
		e.Close()
		t.Error("a process that is not there was made a target")
	}
}

// A user who may not use BPF is told so whatever the kernel refuses first: maps are made in an
// order that differs from run to run.
func TestRefusalIsOfPermission(t *testing.T) {
	open(t, cpuOptions(99), Auto).Close() // skips if BPF is not permitted
	refused := fmt.Errorf("map aways: %w", ebpf.ErrNotSupported)
	if err := loadError(refused); errors.Is(err, capture.ErrPermission) || !errors.Is(err, capture.ErrUnsupported) {
		t.Errorf("root is told: %v", err)
	}
	told := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			told <- errno
			return
		}
		told <- loadError(refused)
	}()
	if err := <-told; !errors.Is(err, capture.ErrPermission) {
		t.Errorf("an ordinary user is told: %v", err)
	}
}
