package winsuspend_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// task is a thread of a program in Wine as Linux tells of it.
type task struct {
	state byte
	ticks uint64 // of CPU time
}

// tasks returns the threads of a process.
func tasks(t *testing.T, pid int) map[string]task {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/task", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]task{}
	for _, e := range entries {
		stat, err := os.ReadFile(filepath.Join(dir, e.Name(), "stat"))
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		user, _ := strconv.ParseUint(f[11], 10, 64)
		system, _ := strconv.ParseUint(f[12], 10, 64)
		out[e.Name()] = task{f[0][0], user + system}
	}
	return out
}

// A candid that gets no CPU while it has a thread suspended does not leave it so: its guard lets the
// thread go on while candid stands, and candid goes on afterwards.
func TestStarvedWhileSampling(t *testing.T) {
	exe, dir := candidExe(t), t.TempDir()
	c := fixture.Wine(t, mingw(t, "testdata/spin.c"), "300")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	within := func(what string, is func() bool) {
		t.Helper()
		for begin := time.Now(); !is(); time.Sleep(time.Millisecond) {
			if time.Since(begin) > time.Minute {
				t.Fatalf("%s: not within a minute", what)
			}
		}
	}
	// The two threads that compute; the others have gone to sleep, one because the program suspended it.
	first := map[string]task{}
	var workers []string
	within("two threads that compute", func() bool {
		if len(first) < 3 {
			first = tasks(t, c.Process.Pid)
			return false
		}
		workers = nil
		for tid, now := range tasks(t, c.Process.Pid) {
			if now.ticks > first[tid].ticks+5 {
				workers = append(workers, tid)
			}
		}
		return len(workers) == 2
	})
	counts := func() string {
		t.Helper()
		out, errs, code := wine(t, dir, buildWindows(t, "./testdata/killer"), strconv.Itoa(pid), "counts")
		if code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, out, errs)
		}
		return out
	}
	before, tooLittle := counts(), fixture.Watch(t)

	candid := fixture.Wine(t, exe, "record", "-p", strconv.Itoa(pid), "-d", "300s", "-F", "20000", "--force", "-o", "x.jfr")
	candid.Dir = dir
	var said strings.Builder
	candid.Stderr, candid.WaitDelay = &said, 5*time.Second
	if err := fixture.Spawn(candid); err != nil {
		t.Fatal(err)
	}
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := candid.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		_ = candid.Process.Kill()
		_ = candid.Wait()
	}()
	// A thread that computes sleeps only while it is suspended.
	suspended := func() string {
		now := tasks(t, c.Process.Pid)
		for _, tid := range workers {
			if now[tid].state == 'S' {
				return tid
			}
		}
		return ""
	}
	const wanted = 5
	for caught, begin := 0, time.Now(); caught < wanted; {
		if time.Since(begin) > time.Minute {
			if caught == 0 {
				t.Fatalf("candid was never stopped while a thread was suspended:\n%s", said.String())
			}
			break
		}
		if suspended() == "" {
			continue
		}
		signal(syscall.SIGSTOP)
		time.Sleep(4 * time.Millisecond)
		if tid := suspended(); tid != "" {
			caught++
			before := tasks(t, c.Process.Pid)[tid].ticks
			within("thread "+tid+" goes on while candid is stopped", func() bool { return tasks(t, c.Process.Pid)[tid].ticks > before+1 })
		}
		signal(syscall.SIGCONT)
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond) // some samples are taken
	signal(syscall.SIGINT)
	err = candid.Wait()
	if !strings.Contains(said.String(), "candid's guard let go of a thread") {
		t.Errorf("%v:\n%s", err, said.String())
	}
	if after := counts(); after != before {
		t.Errorf("how often each thread was suspended before:\n%safterwards:\n%s%s", before, after, said.String())
	}
	after := tasks(t, c.Process.Pid)
	within("both threads go on", func() bool {
		now := tasks(t, c.Process.Pid)
		return now[workers[0]].ticks > after[workers[0]].ticks && now[workers[1]].ticks > after[workers[1]].ticks
	})
	if code := candid.ProcessState.ExitCode(); code == 5 { // no samples
		tooLittle("candid got too little of the CPUs:\n%s", said.String())
	} else if code != 0 {
		t.Errorf("%v:\n%s", err, said.String())
	}
}
