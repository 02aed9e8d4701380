package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/report"
)

// However a target ends, what was recorded is saved, a line says how the target ended, and the exit
// code says whether that was as requested.
func TestTargetEnds(t *testing.T) {
	t.Parallel()
	able(t)
	ways := []struct {
		name, what string
		end        func(*running)
		words      string
		code       int // without -d; with -d it is exitEarly
	}{
		{"exits with 3", "for 1ms", func(r *running) { r.tell(t) }, "the target exited with code 3 after ", exitOK},
		{"exits with 0", "spin", func(r *running) { r.in.Close() }, "the target exited with code 0 after ", exitOK},
		{"is killed", "spin", func(r *running) { r.Process.Kill() }, "the target was killed by SIGKILL after ", exitEarly},
		{"is terminated", "spin", func(r *running) { r.Process.Signal(syscall.SIGTERM) }, "the target was killed by SIGTERM after ", exitEarly},
	}
	for _, engine := range []string{"auto", "perf", "suspend", "suspend as another user"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			engine, _, nobody := strings.Cut(engine, " ")
			for i, way := range ways {
				// Each engine is tested with each end, half of them with -d.
				for _, long := range []bool{false, true} {
					if engine != "auto" && long == (i%2 == 0) {
						continue
					}
					name := way.name
					if long {
						name += " before -d"
					}
					t.Run(name, func(t *testing.T) {
						args := []string{"--engine", engine}
						code, words := way.code, way.words
						if long {
							args, code = append(args, "-d", "1h"), exitEarly
						}
						var as []string
						target := func(t *testing.T, what string) *running { return program(t, what) }
						if nobody {
							root(t)
							as, target = asNobody, programOfNobody
						}
						p := target(t, way.what)
						tooLittle := fixture.Watch(t)
						r := recorderAs(t, as, append(args, "-p", p.pid())...)
						works(t, p.Process.Pid, 200*time.Millisecond)
						way.end(p)
						reap(p)
						got := r.end(t, code)
						said := r.errs.String()
						if samples(got, "spinUntil") == 0 {
							tooLittle("200 ms of work have no sample; saved:\n%s\n%s", got, said)
						}
						if !strings.Contains(said, words) || long != strings.Contains(said, "before the 1h0m0s had passed") {
							t.Errorf("no %q in\n%s", words, said)
						}
					})
				}
			}
		})
	}
}

// reap waits for a program as its parent, so that no zombie is left.
func reap(r *running) { _, _ = r.Process.Wait() }

// programOfNobody starts a program as an ordinary user.
func programOfNobody(t *testing.T, what string) *running {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	copied := filepath.Join(public(t, 0o755), "program") // where other users may run it
	if err == nil {
		err = os.WriteFile(copied, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(asNobody[0], append(asNobody[1:], copied)...)
	c.Env = append(os.Environ(), actAs+"="+what)
	c.Dir = "/"
	r := start(t, c)
	r.wait(t, "ready")
	return r
}

// A zombie's status can be read too: here nobody reaps the target.
func TestTargetEndsUnnoticed(t *testing.T) {
	able(t)
	p := program(t, "spin")
	r := recorder(t, "-p", p.pid())
	works(t, p.Process.Pid, time.Second) // on a busy machine candid gets its first sample late
	p.Process.Kill()
	r.end(t, exitEarly)
	if said := r.errs.String(); !strings.Contains(said, "the target was killed by SIGKILL after ") {
		t.Error(said)
	}
}

// One of several targets may end: recording goes on with the others.
func TestOneOfTheTargetsEnds(t *testing.T) {
	t.Parallel()
	able(t)
	for _, engine := range []string{"auto", "suspend"} {
		t.Run(engine, func(t *testing.T) {
			// One target exits: that is as it should be, if nothing else was requested.
			a, b := program(t, "for 1ms"), program(t, "spin")
			r := recorder(t, "--engine", engine, "-p", a.pid(), "-p", b.pid())
			works(t, a.Process.Pid, 100*time.Millisecond)
			a.tell(t)
			reap(a)
			await(t, "a line of the end", func() bool { return strings.Contains(r.errs.String(), "process "+a.pid()+" exited with code 3 after ") })
			works(t, b.Process.Pid, 300*time.Millisecond)
			r.Process.Signal(syscall.SIGINT)
			if got := r.end(t, exitOK); samples(got, "spinUntil") == 0 {
				t.Errorf("saved:\n%s", got)
			}

			// One target is killed: the exit code says so, even if the others are recorded to the
			// end.
			a = program(t, "spin")
			r = recorder(t, "--engine", engine, "-p", a.pid(), "-p", b.pid(), "--json")
			works(t, a.Process.Pid, 100*time.Millisecond)
			a.Process.Kill()
			reap(a)
			await(t, "a line of the end", func() bool {
				return strings.Contains(r.errs.String(), "process "+a.pid()+" was killed by SIGKILL after ")
			})
			works(t, b.Process.Pid, 300*time.Millisecond)
			b.in.Close()
			reap(b)
			r.end(t, exitEarly)
			if !strings.Contains(r.errs.String(), "the targets ended after ") {
				t.Errorf("no word of the end of all:\n%s", r.errs.String())
			}
			var sum report.SummaryReport
			if err := json.Unmarshal(r.out.Bytes(), &sum); err != nil {
				t.Fatal(err)
			}
			if len(sum.Ended) != 2 || sum.Ended[0].PID != a.Process.Pid || sum.Ended[0].Signal != "SIGKILL" || sum.Ended[0].Code != nil ||
				sum.Ended[1].PID != b.Process.Pid || sum.Ended[1].Code == nil || *sum.Ended[1].Code != 0 || sum.Ended[1].After < sum.Ended[0].After {
				t.Errorf("the summary tells of %+v", sum.Ended)
			}
		})
	}
}

// If only errors are printed, the early end is one.
func TestTargetEndsQuietly(t *testing.T) {
	t.Parallel()
	able(t)
	p := program(t, "spin")
	c := command(t, "record", "-q", "-F", "500", "-o", "x.jfr", "-d", "1h", "-p", p.pid())
	var errs syncBuffer
	c.Stderr = &errs
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	await(t, "candid to write", func() bool { // it does so when it samples
		files, _ := filepath.Glob(filepath.Join(c.Dir, "*.jfr*"))
		return len(files) > 0
	})
	works(t, p.Process.Pid, time.Second)
	p.Process.Kill()
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != exitEarly || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), "was killed by SIGKILL") {
		t.Errorf("exit code %d\n%s", code, errs.String())
	}
}

// A target that is killed while it is stopped for a sample ends like any other.
func TestKilledInAStop(t *testing.T) {
	t.Parallel()
	able(t)
	seen := 0
	for range 8 {
		p := program(t, "spin")
		r := recorder(t, "--engine", "suspend", "-F", "5000", "-p", p.pid(), "-d", "1h")
		works(t, p.Process.Pid, 100*time.Millisecond)
		p.Process.Kill()
		reap(p)
		// Among dozens of threads that want each CPU it may not have reached its first stop.
		err := r.Wait()
		got := outcome(t, r.Cmd, err, &r.out, &r.errs)
		crowded := got.code == exitNoSamples && strings.Contains(got.err, "too many threads want the CPUs")
		b, err := os.ReadFile(r.file)
		switch {
		case err != nil:
			t.Errorf("nothing was saved: %v\n%s", err, got.err)
		case !crowded && (got.code != exitEarly || samples(string(b), "") == 0):
			t.Errorf("exit code %d, saved:\n%s\n%s", got.code, b, got.err)
		case !crowded:
			seen++
		}
		if !strings.Contains(got.err, "the target was killed by SIGKILL after ") {
			t.Error(got.err)
		}
	}
	if seen == 0 {
		t.Error("no recording has samples")
	}
}
