package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// A stack that cannot be read, because nobody provides a page of it, holds up neither -d, nor Ctrl-C,
// nor dump, nor the thread: candid ends on time and says what it could not read.
func TestMemoryThatBlocks(t *testing.T) {
	able(t)
	namespaces(t)
	program := fixture.C(t, "testdata/blocking.c")
	for _, c := range []struct{ kind, says string }{{"uffd", "userfaultfd"}, {"fuse", "does not answer"}} {
		t.Run(c.kind, func(t *testing.T) {
			if _, err := os.Stat("/dev/fuse"); err != nil && c.kind == "fuse" {
				t.Skip("this kernel has no FUSE")
			}
			dir := public(t, 0o755)
			target := start(t, exec.Command("unshare", "-m", program, c.kind, dir))
			target.wait(t, "ready")
			// on is how long beyond what was asked for a run may take. Attaching to a process and a
			// busy machine take their time, but a read that does not return takes all of it.
			on := func(t *testing.T, asked time.Duration, args ...string) result {
				t.Helper()
				r, took := endedInTime(t, asked, os.Interrupt, args...)
				t.Logf("%s: %v more than asked for", strings.Join(args, " "), (took - asked).Round(time.Millisecond))
				if !runsOn(t, target.pid()) {
					t.Errorf("a thread of the target stays stopped")
				}
				return r
			}
			for _, engine := range []string{"auto", "perf", "suspend"} {
				for _, what := range [][]string{{"-d", "2s"}, {"-d", "100s"}, {"-d", "2s", "-e", "wall"}} {
					if engine == "perf" && len(what) > 2 || engine != "auto" && what[1] == "100s" {
						continue
					}
					args := append([]string{"record", "-p", target.pid(), "-o", "-", "--format", "collapsed", "--engine", engine}, what...)
					r := on(t, 2*time.Second, args...)
					if r.code != exitOK || samples(r.out, "spin") == 0 {
						t.Errorf("%v: exit code %d, %d samples of the thread\n%s%s", args, r.code, samples(r.out, "spin"), r.out, r.err)
					}
					// With BPF the kernel copies what is there, and nothing else is asked for.
					if (c.kind != "uffd" || engine != "auto") && !strings.Contains(r.err, c.says) {
						t.Errorf("%v: nothing says what could not be read\n%s", args, r.err)
					}
				}
			}
			// A thread that waits for a CPU cannot be stopped.
			tooLittle := fixture.Watch(t)
			r := on(t, 0, "dump", target.pid())
			for try := 1; try < 5 && strings.Contains(r.out, "(the thread was not met where"); try++ {
				r = on(t, 0, "dump", target.pid())
			}
			if strings.Contains(r.out, "(the thread was not met where") {
				tooLittle("the thread could not be stopped in five dumps")
			} else if r.code != exitOK || !strings.Contains(r.out, "spin") {
				t.Errorf("dump: exit code %d\n%s%s", r.code, r.out, r.err)
			}
			if out, err := exec.Command("kill", "-9", target.pid()).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// A program whose own file is of a file system that does not answer any more, neither for what it holds
// nor for what it is, holds up nothing: it is recorded without the names that only its file has, and
// says so.
func TestProgramThatBlocks(t *testing.T) {
	able(t)
	namespaces(t)
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("this kernel has no FUSE")
	}
	program := fixture.C(t, "testdata/blocking.c")
	target := start(t, exec.Command("unshare", "-m", program, "program", public(t, 0o755)))
	target.wait(t, "ready")
	runs := [][]string{{"--engine", "auto", "-d", "1s"}, {"--engine", "auto", "-d", "100s"}}
	if fixture.Full(t) {
		runs = append(runs, []string{"--engine", "perf", "-d", "2s"}, []string{"--engine", "suspend", "-d", "2s"}, []string{"--engine", "suspend", "-d", "2s", "-e", "wall"})
	}
	for _, run := range runs {
		args := append([]string{"record", "-p", target.pid(), "-o", "-", "--format", "collapsed"}, run...)
		r, took := endedInTime(t, time.Second, os.Interrupt, args...)
		t.Logf("%v: %v", run, took.Round(time.Millisecond))
		if r.code != exitOK || r.out == "" || !strings.Contains(r.err, "does not answer") {
			t.Errorf("%v: exit code %d\n%s%s", args, r.code, r.out, r.err)
		}
		if !runsOn(t, target.pid()) {
			t.Errorf("%v: the target stays stopped", args)
		}
	}
	looks := [][]string{{"dump", target.pid()}}
	if fixture.Full(t) {
		looks = append(looks, []string{"ps"}, []string{"doctor", "-p", target.pid()}, []string{"top", "--once", "-d", "1s", "-p", target.pid()})
	}
	for _, args := range looks {
		if r, took := endedInTime(t, time.Second, os.Interrupt, args...); r.code != exitOK {
			t.Errorf("%v: exit code %d after %v\n%s%s", args, r.code, took, r.out, r.err)
		}
	}
	if out, err := exec.Command("kill", "-9", target.pid()).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A Java VM whose tables for debuggers cannot be read, because nobody provides their pages, holds up
// nothing either: it is recorded as a native program, and the recording says why. The VM runs on.
func TestTablesThatBlock(t *testing.T) {
	root(t)
	java := chain(t, "120", "-agentpath:"+fixture.C(t, "testdata/tables.c", "-shared", "-fPIC", "-ldl"))
	target := spawned(t, exec.Command(java[0], java[1:]...))
	pid := strconv.Itoa(target.Process.Pid)
	await(t, "the VM's threads", func() bool {
		tasks, err := filepath.Glob("/proc/" + pid + "/task/*")
		return err == nil && len(tasks) > 12
	})
	runs := [][]string{{"--engine", "auto", "-d", "2s"}, {"--engine", "auto", "-d", "100s"}}
	if fixture.Full(t) {
		runs = append(runs, []string{"--engine", "perf", "-d", "2s"}, []string{"--engine", "suspend", "-d", "2s"}, []string{"--engine", "suspend", "-d", "2s", "-e", "wall"})
	}
	for _, run := range runs {
		args := append([]string{"record", "-p", pid, "-o", "-", "--format", "collapsed"}, run...)
		r, took := endedInTime(t, 2*time.Second, os.Interrupt, args...)
		t.Logf("%v: %v", run, took.Round(time.Millisecond))
		if r.code != exitOK || !strings.Contains(r.err, "userfaultfd") {
			t.Errorf("%v: exit code %d\n%s%s", args, r.code, r.out, r.err)
		}
		if !runsOn(t, pid) {
			t.Errorf("%v: a thread of the VM stays stopped", args)
		}
	}
	if r, _ := endedInTime(t, 0, os.Interrupt, "dump", pid); r.code != exitOK || !strings.Contains(r.out, "userfaultfd") {
		t.Errorf("dump: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// endedInTime runs a command that should end after some time by itself, or then by a signal if that is
// what -d 100s says, and fails the test if it is still there much later.
func endedInTime(t *testing.T, asked time.Duration, sig os.Signal, args ...string) (result, time.Duration) {
	t.Helper()
	c := command(t, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	begin := time.Now()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	interrupt := make(<-chan time.Time)
	if strings.Contains(strings.Join(args, " "), "-d 100s") {
		interrupt = time.After(asked)
	}
	for {
		select {
		case err := <-done:
			return outcome(t, c, err, &out, &errs), time.Since(begin)
		case <-interrupt:
			_ = c.Process.Signal(sig)
		case <-time.After(asked + 20*time.Second - time.Since(begin)):
			_ = c.Process.Signal(syscall.SIGKILL)
			t.Fatalf("candid %s is still there after %v\n%s", strings.Join(args, " "), time.Since(begin), errs.String())
		}
	}
}

// runsOn reports whether no thread of a process is in a tracing stop.
func runsOn(t *testing.T, pid string) bool {
	t.Helper()
	out, err := exec.Command("sh", "-c", "cat /proc/"+pid+"/task/*/stat").Output()
	if err != nil {
		t.Fatal(err)
	}
	return !strings.Contains(string(out), ") t ")
}
