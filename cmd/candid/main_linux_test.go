package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/chromium"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/memlimit"
)

// The tests of this package run the real binary, as people do.

var (
	binary string // candid, built without cgo
	shared string // a directory that tests share
)

func TestMain(m *testing.M) {
	if what := os.Getenv(actAs); what != "" {
		act(what)
		return
	}
	// If the tests run in the background or under nohup, their programs still start with the
	// signals that people's programs start with: caught signals are not ignored in children.
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	// Tests that run beside each other read files in this process. Limits for files are tested in
	// candid's own.
	memlimit.OnlyMax()
	syscall.Umask(0o022) // other users run what is built here
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "candid-test-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o755); err != nil { // other users run it too
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		shared, binary = dir, filepath.Join(dir, "candid")
		build := exec.Command("go", "build", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build candid: %v\n%s", err, out)
			return 1
		}
		return chromium.Run(m)
	}())
}

// result is the outcome of a run of candid.
type result struct {
	code     int
	out, err string
}

// patience is how long one run of candid may take on a busy machine.
const patience = 3 * time.Minute

// command returns a candid command that works in a directory of its own.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, binary, args...)
	c.Dir = t.TempDir()
	return c
}

func finish(t testing.TB, c *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	return outcome(t, c, err, &out, &errs)
}

func outcome(t testing.TB, c *exec.Cmd, err error, out, errs fmt.Stringer) result {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", c.Args, err)
	}
	ws := c.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		t.Fatalf("%v: ended by %v (the test kills it after %v)\n%s", c.Args, ws.Signal(), patience, errs)
	}
	return result{ws.ExitStatus(), out.String(), errs.String()}
}

// candid runs a command line to its end.
func candid(t testing.TB, args ...string) result {
	t.Helper()
	return finish(t, command(t, args...))
}

// ok runs a command line to its end, which must be a success.
func ok(t testing.TB, args ...string) result {
	t.Helper()
	r := candid(t, args...)
	if r.code != exitOK {
		t.Fatalf("candid %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.err)
	}
	return r
}

// refused checks that a run ended with the exit code and one clear line that contains all of the
// words.
func (r result) refused(t testing.TB, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\n%s", r.code, code, r.err)
	}
	if strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "candid: ") || len(r.err) < 20 {
		t.Errorf("not one clear line:\n%s", r.err)
	}
	for _, w := range words {
		if !strings.Contains(r.err, w) {
			t.Errorf("%q is missing in: %s", w, r.err)
		}
	}
	if r.out != "" {
		t.Errorf("an error, but standard output has %q", r.out)
	}
}

// forLong are the durations for which a busy program is recorded, in turn: if dozens of threads
// want each CPU and candid may not take a better nice level, a second does not yield ten samples.
var forLong = []string{"1s", "4s", "16s"}

// forEnough runs candid for longer and longer durations until enough accepts the result: how much
// CPU time a program gets in a second depends on the machine.
func forEnough(t testing.TB, enough func(result) bool, args ...string) (r result) {
	t.Helper()
	for _, d := range forLong {
		if r = candid(t, append([]string{args[0], "-d", d}, args[1:]...)...); enough(r) {
			break
		}
	}
	return r
}

// sampled accepts a result with at least one sample.
func sampled(r result) bool { return r.code != exitNoSamples }

// ran accepts a result if the target has run, even if no sample passes a filter.
func ran(r result) bool { return !strings.Contains(r.err, "used no CPU") }

// running is a program that a test started.
type running struct {
	*exec.Cmd
	lines chan string // lines of its standard output; closed at its end
	in    *os.File
}

func start(t testing.TB, c *exec.Cmd) *running {
	t.Helper()
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdin, c.Stdout = inR, pw
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	pw.Close()
	inR.Close()
	r := &running{c, make(chan string, 1<<16), inW}
	go func() {
		defer close(r.lines)
		defer pr.Close()
		for s := bufio.NewScanner(pr); s.Scan(); {
			select {
			case r.lines <- s.Text():
			default: // nobody reads them
			}
		}
	}()
	t.Cleanup(func() {
		inW.Close()
		c.Process.Kill()
		c.Wait()
	})
	return r
}

// line waits for the next line that the program prints.
func (r *running) line(t testing.TB) string {
	t.Helper()
	select {
	case l, ok := <-r.lines:
		if !ok {
			t.Fatalf("%v ended, and was to print a line", r.Args)
		}
		return l
	case <-time.After(patience):
		t.Fatalf("waited %v for a line of %v: it prints nothing", patience, r.Args)
	}
	return ""
}

// wait waits for the next line that contains the words.
func (r *running) wait(t testing.TB, words string) {
	t.Helper()
	for !strings.Contains(r.line(t), words) {
	}
}

func (r *running) pid() string { return fmt.Sprint(r.Process.Pid) }

// tell writes a line to the program's standard input.
func (r *running) tell(t testing.TB) {
	t.Helper()
	if _, err := r.in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
}

// used returns the CPU time of a process until now, to 10 ms.
func used(t testing.TB, pid int) time.Duration {
	t.Helper()
	f := strings.Fields(stat(t, pid))
	user, err := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}

// works waits until a process has used that much more CPU time, however long that takes: samples
// come with CPU time and not with time.
func works(t testing.TB, pid int, long time.Duration) {
	t.Helper()
	begin := used(t, pid)
	await(t, fmt.Sprintf("process %d to use %v of CPU time", pid, long), func() bool { return used(t, pid)-begin >= long })
}

// rests waits until all threads of a process have slept for a while without using CPU time: what a
// program still does after its start shows in a recording.
func rests(t testing.TB, pid int) {
	t.Helper()
	last, since := "", time.Now()
	await(t, fmt.Sprintf("process %d to rest", pid), func() bool {
		now, asleep := "", true
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		for _, task := range tasks {
			s, err1 := os.ReadFile(task + "/stat")
			ran, err2 := os.ReadFile(task + "/schedstat")
			if err1 != nil || err2 != nil {
				asleep = false // it has just ended
				break
			}
			asleep = asleep && bytes.Contains(s, []byte(") S "))
			now += task + " " + string(ran)
		}
		if !asleep || now != last {
			last, since = now, time.Now()
		}
		return asleep && time.Since(since) > 300*time.Millisecond
	})
}

// actAs makes the test binary one of the programs that tests profile.
const actAs = "CANDID_TEST_ACT_AS"

// program starts one of them, with additions to its environment, and waits until it is ready.
func program(t testing.TB, what string, env ...string) *running {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(append(os.Environ(), actAs+"="+what), env...)
	r := start(t, c)
	r.wait(t, "ready")
	return r
}

// able skips the test if candid cannot record on this machine.
func able(t testing.TB) {
	t.Helper()
	if why := ability(); why != "" {
		t.Skip("recording is not possible here: " + why)
	}
}

var ability = sync.OnceValue(func() string {
	out, err := exec.Command(binary, "record", "-q", "-o", os.DevNull, "--format", "collapsed", "--", "true").CombinedOutput()
	if err != nil {
		return string(out)
	}
	return ""
})

func root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// namespaces skips the test if root may not create namespaces on this machine, as in most
// containers.
func namespaces(t testing.TB) {
	t.Helper()
	root(t)
	if err := exec.Command("unshare", "-Urpf", "--mount-proc", "true").Run(); err != nil {
		t.Skipf("namespaces cannot be made here: %v", err)
	}
}

// java returns the launcher of a JDK 17 and the directory of the compiled programs.
func java(t testing.TB) (launcher, classes string) {
	t.Helper()
	able(t)
	javac := fixture.JDKTool(t, 17, "javac")
	compiled.Do(func() {
		var sources []string
		for _, w := range []string{"Chain", "Truth", "Deep", "Crowd", "Births"} {
			sources = append(sources, filepath.Join("..", "..", "workloads", w+".java"))
		}
		own, err := filepath.Glob("testdata/*.java")
		if compileError = err; err == nil {
			compileError = fixture.ClassesTo(filepath.Join(shared, "classes"), javac, append(sources, own...)...)
		}
	})
	if compileError != nil {
		t.Fatal(compileError)
	}
	return filepath.Join(filepath.Dir(javac), "java"), filepath.Join(shared, "classes")
}

var (
	compiled     sync.Once
	compileError error
)

// chain returns the command line of the program with eight tiny methods.
func chain(t testing.TB, seconds string, flags ...string) []string {
	t.Helper()
	launcher, classes := java(t)
	cmd := append([]string{launcher, "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chain::f*"}, flags...)
	return append(cmd, "-cp", classes, "Chain", seconds)
}

// syncBuffer can be read while a process writes to it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// await waits until so returns true.
func await(t testing.TB, what string, so func() bool) {
	t.Helper()
	for begin := time.Now(); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatalf("waited %v in vain for %s", patience, what)
		}
	}
}
