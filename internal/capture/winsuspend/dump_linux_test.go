package winsuspend_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/dump"
	"github.com/candid-profiler/candid/internal/fixture"
)

// locks is a program whose threads have each a state of their own.
const locks = `public class Locks {
  static final Object a = new Object(), b = new Object(), c = new Object();
  static volatile long sink;
  static void spin() { for (;;) sink++; }
  static void both(Object x, Object y) {
    synchronized (x) { try { Thread.sleep(500); } catch (InterruptedException e) { } synchronized (y) { System.out.println("no deadlock"); } }
  }
  static void await() { synchronized (c) { try { c.wait(); } catch (InterruptedException e) { } } }
  public static void main(String[] args) throws Exception {
    new Thread(() -> both(a, b), "first").start();
    new Thread(() -> both(b, a), "second").start();
    new Thread(Locks::spin, "spinner").start();
    new Thread(Locks::await, "waiter").start();
    Thread.sleep(2000);
    System.out.println(ProcessHandle.current().pid());
    Thread.sleep(Long.parseLong(args[0]) * 1000);
    Runtime.getRuntime().halt(0);
  }
}`

// dump shows all threads of a Java program, with native and Java frames in one stack, their states and
// locks, and leaves none suspended.
func TestDump(t *testing.T) {
	exe, java, dir := candidExe(t), fixture.WindowsJVM(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Locks.java"), []byte(locks), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fixture.ClassesTo(dir, fixture.JDKTool(t, 11, "javac"), filepath.Join(dir, "Locks.java")); err != nil {
		t.Fatal(err)
	}
	pid := startWine(t, java, "-cp", dir, "Locks", "120")
	out, errs, code := wine(t, dir, exe, "dump", "-p", strconv.Itoa(pid), "--repeat", "2", "--interval", "200ms", "--json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	looks := json.NewDecoder(strings.NewReader(out))
	for range 2 {
		var d dump.Dump
		if err := looks.Decode(&d); err != nil || len(d.Processes) != 1 {
			t.Fatalf("%d processes, %v\n%s", len(d.Processes), err, out)
		}
		p := &d.Processes[0]
		byName := map[string]*dump.Thread{}
		whole := 0
		for i := range p.Threads {
			th := &p.Threads[i]
			byName[th.Name] = th
			if th.End == "" && th.Error == "" {
				whole++
			} else {
				t.Logf("%q: %s%s: %v", th.Name, th.End, th.Error, th.Frames)
			}
			if th.State == "stopped" {
				t.Errorf("%q is suspended", th.Name)
			}
		}
		if len(p.Threads) < 15 || whole < len(p.Threads)-1 {
			t.Errorf("%d threads, %d with whole stacks", len(p.Threads), whole)
		}
		for name, want := range map[string]struct{ state, java, frame string }{
			"main":    {"sleeping", "TIMED_WAITING (sleeping)", "Locks.main"},
			"spinner": {"running", "RUNNABLE", "Locks.spin"},
			"waiter":  {"sleeping", "WAITING (on object monitor)", "Locks.await"},
			"first":   {"sleeping", "BLOCKED (on object monitor)", "Locks.both"},
			"second":  {"sleeping", "BLOCKED (on object monitor)", "Locks.both"},
		} {
			th := byName[name]
			if th == nil || th.Java == nil {
				t.Errorf("no Java thread %q", name)
				continue
			}
			var frames []string
			for _, f := range th.Frames {
				frames = append(frames, f.Function)
			}
			text := strings.Join(frames, ";")
			if th.State != want.state || th.Java.State != want.java || !strings.Contains(text, want.frame) || !strings.HasSuffix(text, "RtlUserThreadStart") {
				t.Errorf("%q: %s, %s: %s", name, th.State, th.Java.State, text)
			}
		}
		if w := byName["first"]; w != nil && w.Java != nil && (w.Java.WaitsFor == nil || w.Java.WaitsFor.Owner != "second" || len(w.Java.Holds) != 1) {
			t.Errorf("first waits for %+v and holds %+v", w.Java.WaitsFor, w.Java.Holds)
		}
		if len(p.Deadlocks) != 1 || len(p.Deadlocks[0]) != 2 {
			t.Errorf("deadlocks: %v", p.Deadlocks)
		}
	}
	if out, errs, code = wine(t, dir, exe, "dump", "-p", "999996"); code != 4 || !strings.Contains(errs, "999996") {
		t.Errorf("a process that does not exist: exit code %d\n%s%s", code, out, errs)
	}
}
