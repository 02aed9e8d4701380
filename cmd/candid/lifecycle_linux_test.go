package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/format"
)

// recording is a candid that records in the background.
type recording struct {
	*exec.Cmd
	errs syncBuffer
	out  bytes.Buffer
	file string
}

// samplingLine matches what candid prints when it samples.
var samplingLine = regexp.MustCompile(`(?m)^candid: (perf events|threads suspended by ptrace)`)

// recorder starts a recording and waits until it samples.
func recorder(t testing.TB, args ...string) *recording {
	t.Helper()
	return recorderAs(t, nil, args...)
}

// recorderAs starts one through a command that changes its user or its capabilities.
func recorderAs(t testing.TB, as []string, args ...string) *recording {
	t.Helper()
	c := command(t, append([]string{"record", "-F", "500", "-o", "x.collapsed"}, args...)...)
	if as != nil {
		// Other users must be able to pass through all directories on the way to its own.
		for _, dir := range []string{c.Dir, filepath.Dir(c.Dir)} {
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		path, err := exec.LookPath(as[0])
		if err != nil {
			t.Fatal(err)
		}
		c.Path, c.Args = path, append(append([]string{}, as...), c.Args...)
	}
	r := &recording{Cmd: c}
	r.file = filepath.Join(r.Dir, "x.collapsed")
	r.Stdout, r.Stderr = &r.out, &r.errs
	if err := fixture.Spawn(r.Cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Process.Kill()
		r.Wait()
	})
	for begin := time.Now(); !samplingLine.MatchString(r.errs.String()); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatalf("it does not begin:\n%s", r.errs.String())
		}
	}
	return r
}

// end waits for the end of the recording and returns what it saved.
func (r *recording) end(t testing.TB, code int) string {
	t.Helper()
	err := r.Wait()
	if got := outcome(t, r.Cmd, err, &r.out, &r.errs); got.code != code {
		if got.code == exitNoSamples && strings.Contains(got.err, "too many threads want the CPUs") {
			fixture.NotPermitted(t, "no sample: %s", got.err)
		}
		t.Errorf("exit code %d, want %d\n%s", got.code, code, got.err)
	}
	b, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatalf("nothing was saved: %v\n%s", err, r.errs.String())
	}
	return string(b)
}

func TestTargetBecomesAnother(t *testing.T) {
	able(t)
	target := program(t, "exec")
	r := recorder(t, "-p", target.pid())
	// candid names its engine before it samples, and may get no CPU between the two for a while.
	works(t, target.Process.Pid, time.Second)
	target.tell(t)
	got := r.end(t, exitOK)
	if samples(got, "candid.spinUntil") == 0 || samples(got, "sh") == 0 || !strings.Contains(got, "libc") && !strings.Contains(got, "_start") && samples(got, "dash+") == 0 {
		t.Errorf("one of the two programs is missing:\n%s\n%s", got, r.errs.String())
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	able(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			continue // the tests run under nohup, so candid does too
		}
		target := program(t, "tick")
		r := recorder(t, "-p", target.pid())
		works(t, target.Process.Pid, 200*time.Millisecond)
		r.Process.Signal(sig)
		if got := r.end(t, exitOK); samples(got, "candid.spinUntil") == 0 {
			t.Errorf("%v: saved:\n%s", sig, got)
		}
		unharmed(t, target)
	}
}

// The second signal ends candid although the first is still being handled: here candid saves to a
// pipe that no one reads.
func TestSecondInterrupt(t *testing.T) {
	able(t)
	target := program(t, "tick")
	c := command(t, "record", "-p", target.pid(), "--format", "collapsed", "-o", "pipe")
	if err := syscall.Mkfifo(filepath.Join(c.Dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs syncBuffer
	c.Stderr = &errs
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	await(t, "sampling", func() bool { return strings.Contains(errs.String(), "perf events") })
	works(t, target.Process.Pid, 300*time.Millisecond)
	c.Process.Signal(syscall.SIGINT)
	await(t, "the first signal", func() bool { return strings.Contains(errs.String(), "press Ctrl-C again") })
	time.Sleep(300 * time.Millisecond)
	c.Process.Signal(syscall.SIGINT)
	c.Wait() // if it waited for a reader, it would be killed in the end
	if code := c.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d\n%s", code, errs.String())
	}
	unharmed(t, target)
}

// Under nohup the end of the terminal ends nothing.
func TestNohup(t *testing.T) {
	t.Parallel()
	able(t)
	target := program(t, "tick")
	c := command(t, "record", "-F", "500", "-p", target.pid(), "-o", "x.jfr", "-d", "3s")
	c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `trap '' HUP; exec "$0" "$@"`, binary}, c.Args[1:]...)
	var errs syncBuffer
	c.Stderr = &errs
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	await(t, "sampling", func() bool { return strings.Contains(errs.String(), "perf events") })
	c.Process.Signal(syscall.SIGHUP)
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, errs.String())
	}
	// The recorded time is in the file: this test may learn late of the beginning.
	if p, err := format.Read(filepath.Join(c.Dir, "x.jfr")); err != nil || p.Meta.Duration < 2900*time.Millisecond {
		t.Errorf("less than 3 s were recorded: %v\n%s", err, errs.String())
	}
}

// Shells start background commands with Ctrl-C ignored; a signal sent to candid itself still ends
// the recording.
func TestInterruptInBackground(t *testing.T) {
	able(t)
	target := program(t, "tick")
	c := command(t, "record", "-F", "500", "-p", target.pid(), "-o", "x.collapsed")
	c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `trap '' INT; exec "$0" "$@"`, binary}, c.Args[1:]...)
	var errs syncBuffer
	c.Stderr = &errs
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	await(t, "sampling", func() bool { return strings.Contains(errs.String(), "perf events") })
	works(t, target.Process.Pid, 200*time.Millisecond)
	c.Process.Signal(syscall.SIGINT)
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, errs.String())
	}
	if b, err := os.ReadFile(filepath.Join(c.Dir, "x.collapsed")); err != nil || samples(string(b), "") == 0 {
		t.Errorf("saved: %q, %v", b, err)
	}
}

// However candid dies, the target does not notice.
func TestCandidIsKilled(t *testing.T) {
	able(t)
	launcher, classes := java(t)
	vm := exec.Command(launcher, "-cp", classes, "Ticks")
	for _, target := range []*running{program(t, "tick"), start(t, vm)} {
		target.wait(t, "tick")
		r := recorder(t, "-F", "5000", "-p", target.pid())
		time.Sleep(300 * time.Millisecond)
		held := loaded(t, r.Process.Pid)
		if len(held) == 0 && strings.Contains(r.errs.String(), "BPF stack copy") {
			t.Error("no BPF program was seen while it ran")
		}
		r.Process.Kill()
		r.Wait()
		unharmed(t, target)
		await(t, "the kernel to free the BPF programs", func() bool { return freed(held) })
	}
}

// A program that candid launched runs on too.
func TestCandidIsKilledAfterLaunching(t *testing.T) {
	able(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := command(t, "record", "-F", "5000", "-o", "x.collapsed", "--", self)
	c.Env = append(os.Environ(), actAs+"=tick")
	r := start(t, c)
	r.wait(t, "tick")
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.Process.Pid))
	if err != nil || len(lists) == 0 {
		t.Skipf("the kernel does not list children: %v", err)
	}
	var pid int
	var askers []string // the copy of candid that asks file systems
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the thread may have ended
		for _, child := range strings.Fields(string(children)) {
			if line, _ := os.ReadFile("/proc/" + child + "/cmdline"); strings.HasPrefix(string(line), "candid: asking") {
				askers = append(askers, child)
			} else if pid != 0 {
				t.Fatalf("candid has children besides %d and %s: %q", pid, askers, children)
			} else if pid, err = strconv.Atoi(child); err != nil {
				t.Fatal(err)
			}
		}
	}
	if pid == 0 || len(askers) > 1 {
		t.Fatalf("the program is %d, the copies of candid are %s", pid, askers)
	}
	r.Process.Kill()
	r.Process.Wait()
	child, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer child.Kill()
	alone := &running{&exec.Cmd{Process: child}, r.lines, r.in}
	unharmed(t, alone)
	for _, asker := range askers {
		await(t, "the end of candid's copy "+asker, func() bool {
			line, err := os.ReadFile("/proc/" + asker + "/cmdline")
			return err != nil || !strings.HasPrefix(string(line), "candid: asking")
		})
	}
}

// With --children the processes that a target starts become targets.
func TestChildrenOfTarget(t *testing.T) {
	able(t)
	c := exec.Command("sh", "-c", `echo ready; read x; sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; true`)
	target := start(t, c)
	target.wait(t, "ready")
	r := recorder(t, "-t", "--children", "-p", target.pid())
	fmt.Fprintln(target.in)
	got := r.end(t, exitOK)
	others := 0
	for _, s := range stacks(got) {
		if !strings.Contains(s.frames[0], "tid="+target.pid()+"]") {
			others += s.count
		}
	}
	if others < 20 {
		t.Errorf("%d samples of the process that the target started\n%s", others, r.errs.String())
	}
}

// loaded lists the BPF programs that a process holds, by ID.
func loaded(t testing.TB, pid int) []ebpf.ProgramID {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	var out []ebpf.ProgramID
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for l := range strings.Lines(string(b)) {
			if name, value, _ := strings.Cut(l, ":"); name == "prog_id" {
				id, err := strconv.Atoi(strings.TrimSpace(value))
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, ebpf.ProgramID(id))
			}
		}
	}
	return out
}

// freed reports whether the kernel no longer has any of the programs.
func freed(ids []ebpf.ProgramID) bool {
	for _, id := range ids {
		if p, err := ebpf.NewProgramFromID(id); err == nil {
			p.Close()
			return false
		}
	}
	return true
}

// unharmed checks that a target that prints ticks still does so, that none of its threads is
// stopped, and that it is not traced.
func unharmed(t testing.TB, r *running) {
	t.Helper()
	for len(r.lines) > 0 {
		<-r.lines
	}
	for range 5 {
		r.wait(t, "tick")
	}
	tasks, err := filepath.Glob("/proc/" + r.pid() + "/task/*/status")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no threads: %v", err)
	}
	for _, f := range tasks {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it ended
		}
		for l := range strings.Lines(string(b)) {
			name, value, _ := strings.Cut(strings.TrimSpace(l), ":")
			value = strings.TrimSpace(value)
			if name == "State" && strings.ContainsAny(value[:1], "tTZX") || name == "TracerPid" && value != "0" {
				t.Errorf("%s: %s %s", f, name, value)
			}
		}
	}
}

func TestAttachAgainAndAgain(t *testing.T) {
	t.Parallel()
	launcher, classes := java(t)
	target := start(t, exec.Command(launcher, "-cp", classes, "Ticks"))
	target.wait(t, "tick")
	begin, ran, seen := time.Now(), used(t, target.Process.Pid), 0
	n := 0
	for ; n < 20 && time.Since(begin) < 10*time.Second; n++ {
		r := candid(t, "record", "-q", "-F", "5000", "-d", "20ms", "-p", target.pid(), "-o", "-", "--format", "collapsed")
		switch {
		case r.code == exitOK:
			seen++
		case r.code != exitNoSamples: // on a busy machine it may not have run
			t.Fatalf("cycle %d: exit code %d\n%s", n, r.code, r.err)
		}
	}
	// On a busy machine it does not run in every 20 ms.
	share := min(1, float64(used(t, target.Process.Pid)-ran)/float64(time.Since(begin)))
	if want := share * float64(n) / 4; float64(seen) < math.Floor(want) {
		t.Errorf("%d of %d recordings saw the target run, which had %.0f %% of a CPU", seen, n, 100*share)
	}
	unharmed(t, target)
}

func TestSeveralTargets(t *testing.T) {
	t.Parallel()
	able(t)
	a, b := program(t, "spin"), program(t, "syscalls")
	var first, second int
	r := forEnough(t, func(r result) bool {
		first, second = samples(r.out, "candid.spinUntil"), samples(r.out, "candid.readZeros")
		return first >= 10 && second >= 10
	}, "record", "-q", "-F", "500", "-p", a.pid(), "-p", b.pid(), "-p", a.pid(), "-o", "-", "--format", "collapsed", "-t")
	if r.code != exitOK || first == 0 || second == 0 {
		t.Fatalf("exit code %d, %d and %d samples:\n%s%s", r.code, first, second, r.out, r.err)
	}
	if first > 12*second || second > 12*first {
		t.Errorf("%d samples of one and %d of the other, which both use all they get", first, second)
	}
	one := forEnough(t, func(r result) bool { return samples(r.out, "candid.readZeros") > 0 },
		"record", "-q", "-F", "500", "-p", a.pid()+","+b.pid(), "-o", "-", "--format", "collapsed")
	if one.code != exitOK || samples(one.out, "candid.readZeros") == 0 {
		t.Errorf("with a comma: exit code %d\n%s%s", one.code, one.out, one.err)
	}
}

func TestWholeMachine(t *testing.T) {
	able(t)
	root(t)
	program(t, "spin")
	got := ok(t, "record", "-F", "200", "-a", "-d", "2s", "-o", "-", "--format", "collapsed", "-t")
	if samples(got.out, "candid.spinUntil") == 0 {
		t.Errorf("the program that spins is not seen:\n%s", got.err)
	}
	for _, s := range stacks(got.out) {
		if strings.HasPrefix(s.frames[0], "[ tid=") {
			t.Errorf("a thread has no name: %v", s.frames)
		}
	}
}

func TestManyThreads(t *testing.T) {
	able(t)
	threads := map[string]bool{}
	r := forEnough(t, func(r result) bool {
		clear(threads)
		for _, s := range stacks(r.out) {
			threads[s.frames[0]] = true
		}
		return len(threads) >= 100
	}, "record", "-t", "-F", "2000", "-p", program(t, "threads 600").pid(), "-o", "-", "--format", "collapsed")
	if r.code != exitOK || len(threads) < 100 {
		t.Errorf("exit code %d, %d of 600 threads were seen\n%s", r.code, len(threads), r.err)
	}
	if n := samples(r.out, "candid.manyThreads"); n < samples(r.out, "")/3 {
		t.Errorf("%d of %d samples in the threads' function", n, samples(r.out, ""))
	}
}

// Threads that live for 2 ms are seen, with all their callers.
func TestShortThreads(t *testing.T) {
	t.Parallel()
	able(t)
	var threads map[string]bool
	var whole, leaves int
	r := forEnough(t, func(r result) bool {
		threads, whole, leaves = map[string]bool{}, 0, 0
		for _, s := range stacks(r.out) {
			if strings.Contains(strings.Join(s.frames, ";"), "candid.spinUntil") {
				threads[s.frames[0]] = true
				leaves += s.count
				if strings.Contains(strings.Join(s.frames, ";"), "candid.churn.func1") {
					whole += s.count
				}
			}
		}
		return len(threads) >= 30 && leaves >= 500
	}, "record", "-t", "-F", "1000", "-p", program(t, "churn").pid(), "-o", "-", "--format", "collapsed")
	// Stacks of which a page was absent at that moment are one in hundreds.
	if r.code != exitOK || len(threads) < 30 || 100*(leaves-whole) > max(leaves, 500) {
		t.Errorf("exit code %d, %d threads, %d of %d samples with their caller\n%s", r.code, len(threads), whole, leaves, r.err)
	}
}
