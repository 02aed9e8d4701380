package main

import (
	"bytes"
	"os"
	"os/exec"
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
