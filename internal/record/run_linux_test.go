package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/launch"
	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/target"
)

func TestMain(m *testing.M) {
	if os.Getenv(actSpin) != "" {
		for {
			runtime.KeepAlive(actSpin)
		}
	}
	os.Exit(m.Run())
}

// actSpin makes the test binary a program that uses all the CPU it gets.
const actSpin = "CANDID_TEST_SPIN"

// spin starts a program that uses all the CPU it gets.
func spin(t *testing.T) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), actSpin+"=1")
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	return c
}

func run(t *testing.T, o Options) *Result {
	t.Helper()
	if o.Hz == 0 {
		o.Hz = 997
	}
	if o.Events == nil {
		o.Events = []string{"cpu"}
	}
	r, err := Run(t.Context(), o)
	if errors.Is(err, capture.ErrPermission) || errors.Is(err, capture.ErrUnsupported) {
		t.Skipf("recording is not possible here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.child != nil {
		t.Cleanup(r.child.Kill) // even if the test has waited for it
	}
	return r
}

func openFiles(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// cpuTime returns what the first thread of a process has used until now.
func cpuTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var ran int64
	_, err = fmt.Sscan(string(b), &ran)
	return time.Duration(ran), err
}

// A recording leaves nothing behind in candid: no descriptor, no goroutine.
func TestManyRecordings(t *testing.T) {
	target := spin(t)
	pid := target.Process.Pid
	files, routines, seen := 0, 0, 0
	begin := time.Now()
	ran, err := cpuTime(pid)
	if err != nil {
		t.Fatal(err)
	}
	cycles := 100
	if fixture.Full(t) {
		cycles = 200
	}
	for n := range cycles {
		engine := "perf-thread"
		if n%20 == 0 && time.Since(begin) < 20*time.Second {
			engine = "auto"
		}
		r := run(t, Options{PIDs: []int{pid}, Duration: 20 * time.Millisecond, Engine: engine})
		if len(r.Profile.Samples) > 0 {
			seen++
		}
		if n == 20 { // everything that is opened once is open now
			runtime.GC()
			files, routines = openFiles(t), runtime.NumGoroutine()
		}
	}
	share := 0.0 // share of a CPU that the target had
	if u, err := cpuTime(pid); err != nil {
		t.Error(err)
	} else {
		share = min(1, (u-ran).Seconds()/time.Since(begin).Seconds())
	}
	f, g := 0, 0
	for range 400 { // the last one may still be ending
		runtime.GC()
		if f, g = openFiles(t), runtime.NumGoroutine(); f <= files+1 && g <= routines+1 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if f > files+1 || g > routines+1 {
		t.Errorf("%d files and %d goroutines after 20 recordings, %d and %d after %d", files, routines, f, g, cycles)
	}
	if float64(seen) < share*float64(cycles)/5 { // on a busy machine it does not run in every 20 ms
		t.Errorf("%d of %d recordings saw the target run, which had %.0f %% of a CPU", seen, cycles, 100*share)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the target is gone: %v", err)
	}
}

func TestEndsWithContext(t *testing.T) {
	pid := spin(t).Process.Pid
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := Options{PIDs: []int{pid, pid}, Hz: 499, Events: []string{"cpu"}}
	o.Progress = func(samples uint64, _ time.Duration) { // the first call comes with the first batch
		if samples > 10 {
			cancel()
		}
	}
	r, err := Run(ctx, o)
	if errors.Is(err, capture.ErrPermission) {
		t.Skip(err)
	}
	if err != nil || len(r.Profile.Samples) <= 10 {
		t.Fatalf("%d samples, %v", len(r.Profile.Samples), err)
	}
	if err := r.Profile.Check(); err != nil {
		t.Error(err)
	}
	if n := len(r.Profile.Processes); n != 1 {
		t.Errorf("%d processes for one that was named twice", n)
	}
}

// The samples stand for the CPU time by the kernel's account.
func TestWeightIsCPUTime(t *testing.T) {
	pid := spin(t).Process.Pid
	r := run(t, Options{PIDs: []int{pid}, Duration: 2 * time.Second, Hz: 2000})
	weight, kernel := 0.0, 0.0
	for _, s := range r.Profile.Samples {
		weight += float64(s.Weight)
	}
	for _, th := range r.Profile.Threads {
		kernel += float64(th.KernelCPU)
	}
	if weight < 0.85*kernel || weight > 1.15*kernel {
		t.Errorf("%d samples stand for %.0f ms, the kernel counted %.0f ms", len(r.Profile.Samples), weight/1e6, kernel/1e6)
	}
}

func TestThreadFilter(t *testing.T) {
	pid := spin(t).Process.Pid
	o := Options{PIDs: []int{pid}, Duration: 200 * time.Millisecond}
	parsed := func(w filter.Words) *filter.Spec {
		s, err := filter.Parse(w)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	o.Filter = parsed(filter.Words{Thread: "^no such name$"})
	// On a busy machine the target may get no CPU in so short a time.
	recorded := func() *Result {
		for range 100 {
			if r := run(t, o); r.Passed.All > 0 {
				return r
			}
		}
		t.Fatal("no samples at all")
		return nil
	}
	if r := recorded(); len(r.Profile.Samples) != 0 || !errors.Is(r.Filtered, filter.ErrEmpty) {
		t.Errorf("%d samples of threads that do not match, of %d; %v", len(r.Profile.Samples), r.Passed.All, r.Filtered)
	}
	o.Filter = parsed(filter.Words{Thread: "^record.test$"})
	if r := recorded(); len(r.Profile.Samples) == 0 || r.Filtered != nil {
		t.Errorf("no sample of a thread that matches: %v, %v", r.Passed, r.Filtered)
	}
	// A filter that cannot be applied to the result leaves all of it.
	r := Result{Profile: profiletest.Java()}
	n := len(r.Profile.Samples)
	r.filter(parsed(filter.Words{From: (r.Profile.Meta.Duration - time.Millisecond).String(), To: "-1s"}))
	if len(r.Profile.Samples) != n || !errors.Is(r.Filtered, filter.ErrUsage) {
		t.Errorf("%d of %d samples, %v", len(r.Profile.Samples), n, r.Filtered)
	}
}

// The profile of a launched program is available while the program runs on.
func TestLaunch(t *testing.T) {
	var pass func(os.Signal) error
	// On a busy machine the program may run, or not, for tens of milliseconds between the last
	// sample and the reading of the kernel's account.
	r := run(t, Options{Command: []string{"sh", "-c", "while :; do :; done"}, Duration: time.Second,
		Launched: func(f func(os.Signal) error) { pass = f }})
	if len(r.Profile.Samples) == 0 || pass == nil {
		t.Errorf("%d samples", len(r.Profile.Samples))
	}
	weight, kernel := 0.0, 0.0
	for _, s := range r.Profile.Samples {
		weight += float64(s.Weight)
	}
	for _, th := range r.Profile.Threads {
		kernel += float64(th.KernelCPU)
	}
	if kernel > 1.3*weight+3e6 || kernel < 0.7*weight-3e6 {
		t.Errorf("samples stand for %.1f ms, the kernel counted %.1f ms of the program", weight/1e6, kernel/1e6)
	}
	for _, f := range r.Profile.Funcs {
		if strings.Contains(f.Module, "record.test") || strings.HasPrefix(f.Name, "runtime.") {
			t.Errorf("candid's own %s (%s) is in the profile", f.Name, f.Module)
		}
	}
	if err := pass(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code, launched, err := r.Wait(); code != 137 || !launched || err != nil {
		t.Errorf("%d %v %v", code, launched, err)
	}
}

func TestLaunchFailures(t *testing.T) {
	orphan := filepath.Join(t.TempDir(), "orphan")
	if err := os.WriteFile(orphan, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]error{
		"no-such-command-here": launch.ErrNotFound, "/etc/passwd": launch.ErrNotExecutable, orphan: launch.ErrNotFound,
	} {
		if _, err := Run(t.Context(), Options{Command: []string{command}, Hz: 99, Events: []string{"cpu"}}); !errors.Is(err, want) {
			t.Errorf("%s: %v", command, err)
		}
	}
	for _, pid := range []int{4194305, -1} {
		if _, err := Run(t.Context(), Options{PIDs: []int{pid}, Hz: 99, Events: []string{"cpu"}}); !errors.Is(err, target.ErrNoProcess) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	// There is no child left to wait for.
	var err error
	for end := time.Now().Add(10 * time.Second); err != syscall.ECHILD && time.Now().Before(end); time.Sleep(time.Millisecond) {
		_, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil) // one that was killed takes a moment
	}
	if err != syscall.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
}

// Kernel threads have no stack but the kernel's, which is complete.
func TestKernelThreads(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stop, stopped := make(chan bool), make(chan bool)
	go func() { // this is written out by the kernel's own threads
		defer close(stopped)
		for data := make([]byte, 1<<20); ; {
			select {
			case <-stop:
				return
			default:
				_, _ = file.WriteAt(data, 0)
				_ = file.Sync()
			}
		}
	}()
	r := run(t, Options{All: true, Duration: 1500 * time.Millisecond, Hz: 999})
	close(stop)
	<-stopped
	p, seen := r.Profile, 0
	for i := range p.Samples {
		th := &p.Threads[p.Samples[i].Thread]
		if !strings.HasPrefix(th.Name, "kworker/") && !strings.HasPrefix(th.Name, "ksoftirqd/") && !strings.HasPrefix(th.Name, "jbd2/") {
			continue
		}
		if seen++; profile.CertaintyOf(p.Samples[i].End, p.Samples[i].Flags) != profile.CertaintyComplete {
			t.Errorf("a stack of %s ended as %v", th.Name, p.Samples[i].End)
		}
	}
	if seen == 0 {
		t.Skip("no kernel thread was seen")
	}
}

// On the whole machine kernel threads and processes that come and go are seen, and none of them is
// kept open.
func TestWholeMachine(t *testing.T) {
	before := openFiles(t)
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = exec.Command("sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done").Run()
			}
		}
	}()
	r := run(t, Options{All: true, Duration: 1500 * time.Millisecond, Hz: 300})
	close(stop)
	<-stopped
	names := map[string]bool{}
	for _, th := range r.Profile.Threads {
		names[th.Name] = true
		if th.Name == "" {
			t.Errorf("thread %d of process %d has no name", th.TID, th.PID)
		}
	}
	if !names["sh"] {
		t.Errorf("threads: %v", names)
	}
	if err := r.Profile.Check(); err != nil {
		t.Error(err)
	}
	// The files of programs are closed when their tables are garbage; kallsyms and others are
	// opened once.
	after := 0
	for range 50 {
		runtime.GC()
		time.Sleep(100 * time.Millisecond)
		if after = openFiles(t); after <= before+12 {
			return
		}
	}
	t.Errorf("%d files are open, %d were before", after, before)
}
