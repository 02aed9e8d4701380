package suspend

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
)

// tracerEnv makes the test binary stop or sample the process that it names, without ever ending by
// itself.
const tracerEnv = "CANDID_TEST_TRACER"

func TestMain(m *testing.M) {
	how, pid, ok := strings.Cut(os.Getenv(tracerEnv), " ")
	if !ok {
		os.Exit(m.Run())
	}
	n, err := strconv.Atoi(pid)
	if err == nil {
		err = trace(how, n)
	}
	fmt.Println("error:", err)
	os.Exit(1)
}

func trace(how string, pid int) error {
	if wall, ok := strings.CutPrefix(how, "starve-"); ok {
		return starve(pid, wall == "true")
	}
	if how == "sample" {
		e, err := Open(options(5000, pid), "")
		if err != nil {
			return err
		}
		fmt.Println("sampling")
		return e.Run(context.Background(), newCounter())
	}
	hold := make(chan error)
	go onOwnThread(func() {
		tids, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		for _, task := range tids {
			tid, _ := strconv.Atoi(filepath.Base(task))
			if errno := seize(tid); errno != 0 {
				hold <- errno
				return
			}
			if how == "seize" {
				continue
			}
			if errno := interrupt(tid); errno != 0 {
				hold <- errno
				return
			}
			if _, errno := waitStop(tid, false); errno != 0 {
				hold <- errno
				return
			}
		}
		fmt.Println("stopped")
		for { // Go would take an endless wait for a deadlock, and exit
			time.Sleep(time.Hour)
		}
	})
	return <-hold
}

// tracer starts the test binary as a tracer of a process.
func tracer(t *testing.T, how string, pid int) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", tracerEnv, how, pid))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "error") {
		t.Fatalf("tracer: %s %v", line, err)
	}
	return cmd
}

// stoppedThreads returns the threads of a process that are stopped or traced.
func stoppedThreads(t *testing.T, pid int) (stopped []string) {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if len(files) == 0 {
		t.Fatalf("process %d is gone", pid)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		if s := string(b); strings.Contains(s, "State:\tt") || strings.Contains(s, "State:\tT") || !strings.Contains(s, "TracerPid:\t0\n") {
			stopped = append(stopped, f)
		}
	}
	return stopped
}

func TestSignalsArrive(t *testing.T) {
	p := start(t, compile(t, "signals"))
	e := open(t, options(1000, p.pid()))
	c := newCounter()
	record(t, e, c, 3*time.Second)
	said := p.end()
	var sent, handled, late int
	if _, err := fmt.Sscanf(said, "%d sent %d handled %d late", &sent, &handled, &late); err != nil {
		t.Fatalf("%q: %v", said, err)
	}
	t.Logf("%d samples, %s %+v", c.samples, said, e.Stops())
	if sent != handled || late > 0 || sent == 0 || c.samples == 0 {
		t.Errorf("%d samples; %s", c.samples, said)
	}
}

func TestKilledTracerLeavesNothingStopped(t *testing.T) {
	p := start(t, compile(t, "signals"))
	// It is killed in the middle of a stop of every thread.
	cmd := tracer(t, "stop", p.pid())
	if n := len(stoppedThreads(t, p.pid())); n != 6 {
		t.Errorf("%d threads are stopped, there are 6", n)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if s := stoppedThreads(t, p.pid()); len(s) > 0 {
		t.Errorf("still stopped: %v", s)
	}
	// It is killed at any moment of sampling.
	for i := range 10 {
		cmd := tracer(t, "sample", p.pid())
		time.Sleep(time.Duration(30+17*i) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if s := stoppedThreads(t, p.pid()); len(s) > 0 {
			t.Fatalf("still stopped: %v", s)
		}
	}
	said := p.end()
	var sent, handled, late int
	if _, err := fmt.Sscanf(said, "%d sent %d handled %d late", &sent, &handled, &late); err != nil || sent != handled || late > 0 {
		t.Errorf("%q: %v", said, err)
	}
}

func TestStoppedProcessStaysStopped(t *testing.T) {
	p := start(t, compile(t, "signals"))
	e := open(t, options(1000, p.pid()))
	record(t, e, newCounter(), 200*time.Millisecond)
	done := make(chan struct{})
	go func() {
		defer close(done)
		record(t, e, newCounter(), time.Second)
	}()
	for range 20 {
		time.Sleep(20 * time.Millisecond)
		if out, err := exec.Command("kill", "-STOP", strconv.Itoa(p.pid())).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		stopped := false
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
			if err != nil {
				t.Fatal(err)
			}
			if stopped = strings.Contains(string(b), "State:\tT") || strings.Contains(string(b), "State:\tt"); stopped {
				break
			}
		}
		if !stopped {
			t.Errorf("a stopped process runs")
		}
		if out, err := exec.Command("kill", "-CONT", strconv.Itoa(p.pid())).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	<-done
	if s := stoppedThreads(t, p.pid()); len(s) > 0 {
		t.Errorf("still stopped: %v", s)
	}
}

// A process executes another program while its threads are stopped, from its first thread or from
// another one, and the rest of them end.
func TestExecWhileSampled(t *testing.T) {
	p := start(t, compile(t, "execs"), "-150")
	e := open(t, options(5000, p.pid()))
	c := newCounter()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	go func() {
		defer cancel()
		if said, err := bufio.NewReader(p).ReadString('\n'); said != "done\n" {
			t.Errorf("%q, %v: %v", said, err, p.Cmd.Wait())
		}
	}()
	if err := e.Run(ctx, c); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d samples, %v %+v", c.samples, c.kinds, e.Stops())
	if c.samples < 100 || c.kinds[capture.Exec] < 10 || e.Stops().Stuck > 0 {
		t.Errorf("%d samples, notices %v, %+v", c.samples, c.kinds, e.Stops())
	}
	if s := stoppedThreads(t, p.pid()); len(s) > 0 {
		t.Errorf("still stopped: %v", s)
	}
}

func TestAlreadyTraced(t *testing.T) {
	p := start(t, compile(t, "signals"))
	cmd := tracer(t, "seize", p.pid())
	_, err := Open(options(99, p.pid()), "")
	var traced *TracedError
	if !errors.As(err, &traced) || traced.Tracer != cmd.Process.Pid || !errors.Is(err, capture.ErrPermission) {
		t.Fatalf("%v; the tracer is %d", err, cmd.Process.Pid)
	}
	t.Log(err)
}

func TestThreadStorm(t *testing.T) {
	bin := compile(t, "threads")
	open(t, options(1000, os.Getpid())).Close() // skips if it is not permitted
	attempts(t, 8, func() (wrong, held string) { return storm(t, bin) })
}

// storm returns what is wrong with the samples of a process whose threads are short-lived, and
// whether the engine was held back.
func storm(t *testing.T, bin string) (wrong, held string) {
	p := start(t, bin)
	defer p.Kill()
	before, _ := filepath.Glob("/proc/self/fd/*")
	e, err := Open(options(1000, p.pid()), "")
	if err != nil {
		t.Fatal(err)
	}
	c := newCounter()
	steady, begin := accounts(t, p.pid()), clock()
	first := cpuClock(p.pid())
	// A program that gets little of a busy machine has to be sampled for longer, until what is in
	// no sample at the end is little compared to the rest. The time that it runs from then on until
	// the engine is done may be in samples or not.
	var recorded uint64
	recordUntil(t, e, c, func() bool {
		recorded = cpuClock(p.pid()) - first
		return recorded >= 3e9
	})
	used, after := cpuClock(p.pid())-first, accounts(t, p.pid())
	held = heldBack(e, 0, time.Duration(clock()-begin))
	said := p.end()
	var made int
	if _, err := fmt.Sscanf(said, "%d threads", &made); err != nil {
		t.Fatalf("%q: %v", said, err)
	}
	st := e.Stats()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	open, _ := filepath.Glob("/proc/self/fd/*")
	if len(open) > len(before) {
		t.Errorf("%d descriptors before, %d after", len(before), len(open))
	}
	// Most of the threads are never seen, but others like them stand for them. Their CPU time and
	// the first thread's is the total less that of the long-lived worker.
	var all, worker uint64
	var worked uint32
	for tid, w := range c.weight {
		if all += w; w > worker {
			worker, worked = w, tid
		}
	}
	brief, truth := all-worker, used-(after[worked]-steady[worked])
	t.Logf("%d samples of %d threads, %v, %s %+v %+v; %v of %v of CPU, %v until the engine was done, brief threads %v of %v", c.samples, len(c.weight), c.kinds, said, st, e.Stops(),
		time.Duration(all), time.Duration(recorded), time.Duration(used), time.Duration(brief), time.Duration(truth))
	switch {
	case c.samples == 0 || c.kinds[capture.Fork] == 0 || c.kinds[capture.Exit] == 0:
		return fmt.Sprintf("%d samples, notices %v", c.samples, c.kinds), held
	case float64(all) < 0.97*float64(recorded) || float64(all) > 1.03*float64(used):
		return fmt.Sprintf("samples stand for %v of CPU, the process has used %v, and %v when the engine was done", time.Duration(all), time.Duration(recorded), time.Duration(used)), held
	case after[worked] == 0: // it no longer exists
		return "most samples are not of the thread that works on", held
	case float64(truth) < 0.8*2e5*float64(made):
		return fmt.Sprintf("%d brief threads of at least 0.2 ms have run %v", made, time.Duration(truth)), held
	case float64(brief) < 0.8*float64(truth) || float64(brief) > 1.25*float64(truth):
		return fmt.Sprintf("%d brief threads that have run %v show with %v", made, time.Duration(truth), time.Duration(brief)), held
	}
	return "", held
}

// accounts returns what each thread of a process has run, in ns.
func accounts(t *testing.T, pid int) map[uint32]uint64 {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	runs := map[uint32]uint64{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		if a, _, ok := parseAccount(b); ok {
			tid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			runs[uint32(tid)] = a.run
		}
	}
	return runs
}
