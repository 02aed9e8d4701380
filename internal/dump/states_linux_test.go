package dump

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
)

func (p *Process) named(name string) *Thread {
	for i := range p.Threads {
		if p.Threads[i].Name == name {
			return &p.Threads[i]
		}
	}
	return nil
}

func (t *Thread) has(function string) bool {
	return t != nil && slices.ContainsFunc(t.Frames, func(f Frame) bool { return f.Function == function })
}

// The threads of Locks.java are dumped with what they wait for, and who waits for whom in a cycle.
func TestLocks(t *testing.T) {
	pid := java(t, 25, "Locks", "0")
	p := take(t, Options{PIDs: []int{pid}})
	for name, want := range map[string]Lock{
		"blocked": {How: "waiting to lock", Class: "Locks$Plain", Owner: "owner"},
		"waiting": {How: "waiting on", Class: "Locks$Waited"},
		"locking": {How: "parking to wait for", Class: "java.util.concurrent.locks.ReentrantLock$NonfairSync", Owner: "owner"},
	} {
		th := p.named(name)
		if th == nil || th.Java == nil || th.Java.WaitsFor == nil {
			t.Errorf("%q waits for nothing: %+v", name, th)
			continue
		}
		got := *th.Java.WaitsFor
		if owner := p.named("owner"); want.Owner != "" && got.OwnerTID != owner.TID {
			t.Errorf("%q waits for %+v", name, got)
		}
		if got.OwnerTID = 0; got.Address == 0 {
			t.Errorf("%q: no address", name)
		}
		got.Address = 0
		if got != want {
			t.Errorf("%q waits for %+v, not %+v", name, got, want)
		}
	}
	left, right := p.named("dead-left"), p.named("dead-right")
	if len(p.Deadlocks) != 1 || !slices.Equal(p.Deadlocks[0], []int{left.TID, right.TID}) {
		t.Errorf("deadlocks %v, they should be of %d and %d", p.Deadlocks, left.TID, right.TID)
	}
	kinds := make(map[string]int)
	for i := range p.Threads {
		kinds[p.Threads[i].Kind]++
	}
	for _, k := range []string{"java", "gc", "compiler", "vm", "native"} {
		if kinds[k] == 0 {
			t.Errorf("no thread of kind %s: %v", k, kinds)
		}
	}
	if p.Safepoint != nil || p.Stops.Count > 5 {
		t.Errorf("safepoint %+v, stops %+v", p.Safepoint, p.Stops)
	}
	one := take(t, Options{PIDs: []int{pid}, Threads: regexp.MustCompile("^dead-")})
	if len(one.Threads) != 2 || one.Count != p.Count || len(one.Deadlocks) != 1 {
		t.Errorf("%d of %d threads, deadlocks %v", len(one.Threads), one.Count, one.Deadlocks)
	}
}

// A stopped program, for which jstack hangs, is shown as it is, with its running threads, and it
// stays stopped.
func TestStoppedProgram(t *testing.T) {
	pid := java(t, 17, "Locks", "5", "spin")
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitState(t, pid, 'T')
	p := take(t, Options{PIDs: []int{pid}})
	for name, function := range map[string]string{"owner": "Locks.sleep", "blocked": "java.lang.Thread.run", "spinning": "java.lang.Thread.run", "idle-3": "java.util.concurrent.SynchronousQueue.take"} {
		th := p.named(name)
		if !th.has(function) || th.State != "stopped" || th.End != "" || th.Error != "" {
			t.Errorf("%q: %+v", name, th)
		}
	}
	awaitState(t, pid, 'T')
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if again := takeRunning(t, pid, "spinning"); again.named("spinning").State != "running" {
		t.Errorf("when it may go on: %+v", again.named("spinning"))
	}
}

// awaitState waits for all threads of a process: when the first one has stopped for a signal,
// others may not have stopped yet.
func awaitState(t *testing.T, pid int, want byte) {
	t.Helper()
	for range 30000 {
		stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		other := slices.ContainsFunc(stats, func(file string) bool {
			b, err := os.ReadFile(file)
			_, state, ok := parseStat(b)
			return err != nil || !ok || state != want
		})
		if len(stats) > 0 && !other {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the threads of process %d do not come to state %c", pid, want)
}

// While the VM waits for a thread that does not come to a safepoint, which makes jstack hang, the
// whole state is seen.
func TestUnsafepoint(t *testing.T) {
	for _, major := range []int{8, 11, 21} {
		t.Run(fmt.Sprint(major), func(t *testing.T) { unsafepoint(t, major) })
	}
}

func unsafepoint(t *testing.T, major int) {
	flags := []string{"-XX:-UseCountedLoopSafepoints"}
	operation := "" // JDK 8's library has no symbols for the safepoint's operation and start
	if major > 8 {
		flags = append(flags, "-XX:LoopStripMiningIter=0")
		operation = "VM_G1CollectFull"
	}
	pid := java(t, major, append(flags, "Unsafepoint")...)
	d, err := New(Options{PIDs: []int{pid}, Patience: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	// A dump reads the threads one after another: while a wait begins or ends, its information
	// about one thread and about the VM need not be from the same moment.
	wrong := "none met it"
	for end := time.Now().Add(4 * time.Minute); time.Now().Before(end); {
		out, err := d.Take()
		if err != nil {
			t.Fatal(err)
		}
		p := &out.Processes[0]
		looping := p.named("looping")
		s := p.Safepoint
		collecting := p.named("collecting") // it may not have existed when the threads were listed
		if s == nil || s.State != "synchronizing" || looping == nil || looping.Read != ReadStopped || collecting == nil {
			continue
		}
		var text strings.Builder
		if err := out.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		alone := slices.Equal(s.WaitsFor, []int{looping.TID})
		said := fmt.Sprintf("waiting for \"looping\" tid=%d\n", looping.TID)
		if major == 8 { // without symbols nothing shows that a thread has reached it
			alone, said = slices.Contains(s.WaitsFor, looping.TID), "waiting for "
		}
		if alone && s.Operation == operation && (s.SinceMS > 0) == (major > 8) && looping.Java.VMState == "in Java" &&
			looping.has("Unsafepoint.loop") && strings.Contains(text.String(), said) &&
			collecting.has("java.lang.System.gc") {
			return
		}
		wrong = fmt.Sprintf("%+v, %+v, %+v", s, looping, collecting)
	}
	t.Fatalf("no look at the VM waiting for a safepoint is right: %s", wrong)
}

// A native program is dumped with what its threads wait in, by the kernel's and its own functions.
func TestNativeProgram(t *testing.T) {
	bin := fixture.C(t, filepath.Join("testdata", "waits.c"), "-g")
	p := takeWhere(t, startUntilReady(t, bin), map[string]string{"reads": "read", "polls": "poll", "sleeps": "clock_nanosleep", "locks": "futex"})
	if len(p.Threads) != 5 || p.Runtime != "" || p.Stops.Count != 1 {
		t.Errorf("%d threads, runtime %q, stops %+v", len(p.Threads), p.Runtime, p.Stops)
	}
	for name, want := range map[string]struct{ function, call, state string }{
		"reads": {"reads", "read", "sleeping"}, "polls": {"polls", "poll", "sleeping"},
		"sleeps": {"sleeps", "clock_nanosleep", "sleeping"}, "locks": {"locks", "futex", "sleeping"}, "spins": {"spins", "", "running"},
	} {
		th := p.named(name)
		if !th.has(want.function) || th.Syscall != want.call || th.State != want.state || th.End != "" || th.Kind != "native" || th.Java != nil {
			t.Errorf("%q: %+v", name, th)
		}
	}
}

// The threads of a Go program are walked on their own stacks and on goroutines'.
func TestGoProgram(t *testing.T) {
	t.Setenv(actAsIdle, "1")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pid := startUntilReady(t, exe)
	var p *Process
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		// Its threads may still be on their way to the place where they sleep.
		p = take(t, Options{PIDs: []int{pid}})
		awake := slices.ContainsFunc(p.Threads, func(th Thread) bool { return th.Read != ReadAsleep })
		reads := slices.ContainsFunc(p.Threads, func(th Thread) bool { return th.Syscall == "read" })
		if reads && !awake || time.Now().After(end) {
			break
		}
	}
	reading, waiting := 0, 0
	for i := range p.Threads {
		th := &p.Threads[i]
		if th.Read == ReadAsleep && (th.End != "" || th.Error != "" || len(th.Frames) < 3) {
			t.Errorf("%q ends by %q %q: %+v", th.Name, th.End, th.Error, th.Frames)
		}
		switch {
		case th.Syscall == "read" && th.has("github.com/candid-profiler/candid/internal/dump.TestMain.func1") && th.has("runtime.goexit"):
			reading++
		case th.Syscall == "futex" && th.has("runtime.stopm"), th.Syscall == "epoll_pwait" && th.has("runtime.netpoll"):
			waiting++
		}
	}
	if reading != 1 || waiting == 0 { // how many waiting threads Go has is up to its runtime
		t.Errorf("%d threads read, %d of %d wait", reading, waiting, len(p.Threads))
	}
}

// Only two registers of a sleeping thread are known, and not those that the tables of code with
// frame pointers use.
func TestFramePointers(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("tables of other processors find frames by the stack pointer")
	}
	bin := fixture.C(t, filepath.Join("testdata", "frames.c"), "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
	pid := startUntilReady(t, bin)
	for name, functions := range map[string][]string{"large": {"large_leaf", "caller", "large"}, "later": {"sized_later", "caller", "later"}} {
		th := takeWhere(t, pid, map[string]string{name: "poll"}).named(name)
		if th == nil || th.Read != ReadAsleep || th.Syscall != "poll" || th.End != "" {
			t.Errorf("%q: %+v", name, th)
			continue
		}
		var got []string
		for _, f := range th.Frames {
			if slices.Contains(functions, f.Function) {
				got = append(got, f.Function)
			}
		}
		if !slices.Equal(got, functions) {
			t.Errorf("%q: %v of %+v", name, got, th.Frames)
		}
	}
}

// A program is traced by another one: its sleeping threads are shown nevertheless, and so is the
// reason why the running one is not.
func TestTracedProgram(t *testing.T) {
	strace := fixture.Tool(t, "strace") // the other tracer
	bin := fixture.C(t, filepath.Join("testdata", "waits.c"), "-g")
	pid := startUntilReady(t, bin)
	tracer := exec.Command(strace, "-f", "-o", "/dev/null", "-p", fmt.Sprint(pid))
	if err := fixture.Spawn(tracer); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Process.Kill(); _ = tracer.Wait() })
	for traced := false; !traced; time.Sleep(5 * time.Millisecond) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		traced = len(tasks) == 5 && !slices.ContainsFunc(tasks, func(task string) bool {
			b, _ := os.ReadFile(task)
			return !strings.Contains(string(b), fmt.Sprintf("TracerPid:\t%d\n", tracer.Process.Pid))
		})
	}
	var p *Process
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		// Threads that the attach stopped may still have to be resumed.
		p = take(t, Options{PIDs: []int{pid}, Patience: 50 * time.Millisecond})
		if th := p.named("spins"); th != nil && th.Read == ReadNot || time.Now().After(end) {
			break
		}
	}
	if th := p.named("sleeps"); !th.has("sleeps") || th.Error != "" {
		t.Errorf("%+v", th)
	}
	if th := p.named("spins"); th == nil || th.Read != ReadNot || !strings.Contains(th.Error, fmt.Sprintf("%d (strace) traces it", tracer.Process.Pid)) {
		t.Errorf("%+v", th)
	}
}

// The methods that compiler threads compile are shown, while a program starts that has every method
// compiled before it runs.
func TestCompiling(t *testing.T) {
	_ = java(t, 17, "Locks") // compiles the classes
	for _, major := range fixture.JDKs(t, 8) {
		t.Run(fmt.Sprintf("jdk%d", major), func(t *testing.T) {
			cmd := exec.Command(fixture.JDKTool(t, major, "java"), "-Xcomp", "-cp", classes.dir, "Locks")
			if err := fixture.Spawn(cmd); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				d, err := New(Options{PIDs: []int{cmd.Process.Pid}, Threads: regexp.MustCompile("CompilerThread")})
				if err != nil {
					continue // it is starting
				}
				out, err := d.Take()
				if d.Close(); err != nil {
					t.Fatal(err)
				}
				for _, th := range out.Processes[0].Threads {
					if th.Java == nil || th.Java.Compiling == "" {
						continue
					}
					if th.Kind != "compiler" || !strings.Contains(th.Java.Compiling, ".") || th.Java.Tier < 1 || th.Java.Tier > 4 {
						t.Errorf("%+v", th.Java)
					}
					return
				}
			}
			t.Error("no compiler thread was seen at work")
		})
	}
}
