package bpfcopy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
)

// clockSource is a program that spends most of its time on the stack of its thread, on which Go
// makes such calls, while its goroutine waits on its own stack.
const clockSource = `package main
import "time"
var t time.Time
func main() { for { t = time.Now() } }`

func clock(t *testing.T) (bin string) {
	t.Helper()
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "clock.go"), filepath.Join(dir, "clock")
	if err := os.WriteFile(src, []byte(clockSource), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", bin, src).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// The goroutine's stack is copied unless the program is known to run no Go code.
func TestSecondStackWhereGoRuns(t *testing.T) {
	pid := startProg(t, clock(t)).Process.Pid
	e := open(t, cpuOptions(500, pid), Exact)
	seconds, samples := 0, 0
	enough := func() bool { return seconds > 0 }
	run := func(why string) {
		t.Helper()
		seconds, samples = 0, 0
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r := newRecorder()
		r.look = func(s *capture.Snapshot) {
			samples++
			if len(s.Other) > 0 {
				seconds++
			}
			if enough() {
				cancel()
			}
		}
		if err := e.Run(ctx, r); err != nil {
			t.Fatal(err)
		}
		if !enough() {
			t.Fatalf("%s: %d second stacks in %d samples", why, seconds, samples)
		}
	}
	tell := func(does bool) {
		t.Helper()
		if err := e.RunsGo(pid, does); err != nil {
			t.Fatal(err)
		}
	}
	run("told nothing")
	tell(false)
	enough = func() bool { return samples >= 100 }
	run("told that it runs no Go")
	if seconds > 0 {
		t.Errorf("told that it runs no Go: %d second stacks in %d samples", seconds, samples)
	}
	tell(true)
	enough = func() bool { return seconds > 0 }
	run("told that it runs Go")
	if err := e.RunsGo(1<<22+1, false); err != nil {
		t.Errorf("of a process that is no target: %v", err)
	}
}

// A statement about one program does not hold for the next.
func TestSecondStackAfterExec(t *testing.T) {
	cmd, release := startGated(t, "exec "+clock(t))
	pid := cmd.Process.Pid
	e := open(t, cpuOptions(500, pid), Exact)
	if err := e.RunsGo(pid, false); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, release)
	findsSecond(t, e)
}

// A statement about a program has no effect either if the next one already runs and the engine's
// user could not know that yet.
func TestSecondStackWhereExecIsUnknown(t *testing.T) {
	bin := clock(t)
	cmd, release := startGated(t, "exec "+bin)
	pid := cmd.Process.Pid
	e := open(t, cpuOptions(500, pid), Exact)
	release()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if exe, err := os.Readlink("/proc/" + itoa(pid) + "/exe"); err == nil && exe == bin {
			break
		} else if time.Since(begin) > time.Minute {
			t.Fatalf("it runs %q: %v", exe, err)
		}
	}
	if err := e.RunsGo(pid, false); err != nil { // this is said of the shell
		t.Fatal(err)
	}
	findsSecond(t, e)
}

// findsSecond runs an engine until a sample has a second stack.
func findsSecond(t *testing.T, e *Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := newRecorder()
	found := false
	r.look = func(s *capture.Snapshot) {
		if found = found || len(s.Other) > 0; found {
			cancel()
		}
	}
	if err := e.Run(ctx, r); err != nil {
		t.Fatal(err)
	}
	if !found {
		t.Fatalf("no second stack in %d samples", r.samples)
	}
}

// teller says of each program, as soon as it is reported, that it runs no Go code.
type teller struct {
	*recorder
	t   *testing.T
	e   *Engine
	due uint32
}

func (s *teller) Notice(n capture.ProcessEvent) {
	if s.recorder.Notice(n); n.Kind == capture.Exec {
		s.due = n.PID
	}
}

func (s *teller) BatchEnd() {
	s.recorder.BatchEnd()
	if s.due != 0 {
		if err := s.e.RunsGo(int(s.due), false); err != nil {
			s.t.Error(err)
		}
		s.due = 0
	}
}

// A statement about the new program holds, whichever of the kernel's two notices of an exec came
// first.
func TestSecondStackTellingOfTheNextProgram(t *testing.T) {
	cmd, release := startGated(t, "exec "+clock(t))
	e := open(t, cpuOptions(500, cmd.Process.Pid), Exact)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := newRecorder()
	without := 0
	r.look = func(s *capture.Snapshot) {
		if without++; len(s.Other) > 0 {
			without = 0
		}
		if without >= 100 {
			cancel()
		}
	}
	release()
	if err := e.Run(ctx, &teller{recorder: r, t: t, e: e}); err != nil {
		t.Fatal(err)
	}
	if without < 100 {
		t.Errorf("second stacks are looked for to the end of %d samples", r.samples)
	}
}
