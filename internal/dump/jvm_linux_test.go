package dump

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
)

var classes struct {
	sync.Once
	dir string
	err error
}

// actAsIdle makes this binary a program for a test to dump.
const actAsIdle = "CANDID_DUMP_TEST_IDLE"

func TestMain(m *testing.M) {
	if os.Getenv(actAsIdle) != "" {
		r, _, err := os.Pipe()
		if err != nil {
			panic(err)
		}
		go func() {
			runtime.LockOSThread()
			_, _ = unix.Read(int(r.Fd()), make([]byte, 1)) // forever
		}()
		time.Sleep(100 * time.Millisecond)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	}
	code := m.Run()
	if classes.dir != "" {
		os.RemoveAll(classes.dir)
	}
	os.Exit(code)
}

// java starts one of the Java programs and waits until it is ready.
func java(t testing.TB, major int, args ...string) int {
	t.Helper()
	classes.Do(func() {
		if classes.dir, classes.err = os.MkdirTemp("", "dump-test-"); classes.err != nil {
			return
		}
		sources := []string{filepath.Join("..", "hotspot", "testdata", "Locks.java"), filepath.Join("..", "hotspot", "testdata", "Unsafepoint.java"), filepath.Join("testdata", "Held.java")}
		classes.err = fixture.ClassesTo(classes.dir, fixture.JDKTool(t, 8, "javac"), append([]string{"-g"}, sources...)...)
	})
	if classes.err != nil {
		t.Fatal(classes.err)
	}
	// On a machine with one CPU or little memory a VM would choose a collector without threads.
	return startUntilReady(t, fixture.JDKTool(t, major, "java"), append([]string{"-XX:+UseG1GC", "-Xmx256m", "-Xss512k", "-cp", classes.dir}, args...)...)
}

// startUntilReady starts a program and waits until it prints "ready".
func startUntilReady(t testing.TB, name string, args ...string) int {
	t.Helper()
	p := fixture.Start(t, exec.Command(name, args...))
	p.Await("ready")
	return p.PID()
}

// take dumps a process once. A running thread stops when it gets a CPU again, which on a busy
// machine may take longer than the default patience.
func take(t testing.TB, o Options) *Process {
	t.Helper()
	if o.Patience == 0 {
		o.Patience = 20 * time.Second
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	out, err := d.Take()
	if err != nil {
		t.Fatal(err)
	}
	return &out.Processes[0]
}

// takeWhere dumps a process until each of some threads, by name, is asleep in the system call that
// it is to wait in: a program that reports that it is ready, and its threads, may still be on their
// way there. It returns the last dump, whatever that shows.
func takeWhere(t testing.TB, pid int, calls map[string]string) (p *Process) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		p = take(t, Options{PIDs: []int{pid}})
		there := true
		for name, call := range calls {
			th := p.named(name)
			there = there && th != nil && th.Read == ReadAsleep && th.Syscall == call
		}
		if there || time.Now().After(end) {
			return p
		}
	}
}

// takeRunning dumps a process until a thread of it, by name, was stopped while it ran: the thread
// waits when the VM stops all threads for a moment. It returns the last dump, whatever that shows.
func takeRunning(t testing.TB, pid int, name string) (p *Process) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		// If many threads compete for a CPU, it may not run for a while.
		p = take(t, Options{PIDs: []int{pid}, Patience: 30 * time.Second})
		if th := p.named(name); th != nil && th.Read == ReadStopped || time.Now().After(end) {
			return p
		}
	}
}

func (p *Process) byTID(tid int) *Thread {
	for i := range p.Threads {
		if p.Threads[i].TID == tid {
			return &p.Threads[i]
		}
	}
	return nil
}

// printed is a thread as the JDK's own tool prints it.
type printed struct {
	name, header, state string
	frames              []string // "pkg.Class.method(File.java:12)"
	locks               []string // "- parking to wait for  <0x...> (a ...)"
}

var printedThread = regexp.MustCompile(`^"(.*)" (#\d+ )?.*nid=(0x[0-9a-f]+|\d+)`)

// jstack asks the JDK for all Java threads, by thread id.
func jstack(t testing.TB, major, pid int) map[int]*printed {
	t.Helper()
	cmd := exec.Command(fixture.JDKTool(t, major, "jcmd"), fmt.Sprint(pid), "Thread.print")
	cmd.Env = append(os.Environ(), "JAVA_TOOL_OPTIONS=-Xmx64m")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("jcmd of JDK %d: %v\n%s", major, err, out)
	}
	threads := make(map[int]*printed)
	var now *printed
	for _, l := range strings.Split(string(out), "\n") {
		if m := printedThread.FindStringSubmatch(l); m != nil {
			if now = nil; m[2] != "" {
				tid, err := strconv.ParseInt(m[3], 0, 64)
				if err != nil {
					t.Fatalf("%q: %v", l, err)
				}
				now = &printed{name: m[1], header: l}
				threads[int(tid)] = now
			}
			continue
		}
		if now == nil {
			continue
		}
		text := strings.TrimSpace(l)
		if s, ok := strings.CutPrefix(text, "java.lang.Thread.State: "); ok {
			now.state = s
		} else if s, ok := strings.CutPrefix(text, "at "); ok {
			now.frames = append(now.frames, withoutModule(s))
		} else if strings.HasPrefix(text, "- ") {
			now.locks = append(now.locks, text)
		}
	}
	return threads
}

// withoutModule removes java.base@17.0.19/ from the front of a frame.
func withoutModule(s string) string {
	function, place, _ := strings.Cut(s, "(")
	if i := strings.IndexByte(function, '@'); i >= 0 {
		if j := strings.IndexByte(function[i:], '/'); j >= 0 {
			function = function[i+j+1:]
		}
	}
	if i := strings.LastIndexByte(place, '/'); i >= 0 {
		place = place[i+1:]
	}
	return function + "(" + place
}

var generatedName = regexp.MustCompile(`\$\$Lambda(\$\d+)?(/[0-9a-fx]+)?\.`)

var lineNumber = regexp.MustCompile(`:\d+\)$`)

// javaFrames returns the Java frames of a thread in jstack's format.
func javaFrames(th *Thread) []string {
	var out []string
	for _, f := range th.Frames {
		if f.java() {
			out = append(out, f.javaText())
		}
	}
	return out
}

// Waiting Java threads are dumped as by the JDK: frames, states and names, on all JDKs.
func TestEqualsJstack(t *testing.T) {
	for _, major := range fixture.JDKs(t, 8) {
		t.Run(fmt.Sprintf("jdk%d", major), func(t *testing.T) {
			t.Parallel()
			pid := java(t, major, "Locks", "20", "spin")
			want := jstack(t, major, pid)
			got := takeRunning(t, pid, "spinning")
			compared, running := 0, 0
			for tid, w := range want {
				th := got.byTID(tid)
				if w.name == "Attach Listener" || strings.Contains(w.name, "CompilerThread") {
					continue
				}
				if th == nil || th.Java == nil {
					t.Errorf("%q is missing: %+v", w.name, th)
					continue
				}
				if th.Name != w.name || th.Java.State != w.state {
					t.Errorf("%q %s: the JDK says %q %s", th.Name, th.Java.State, w.name, w.state)
				}
				if th.Error != "" || th.End != "" {
					t.Errorf("%q: error %q, end %q", th.Name, th.Error, th.End)
				}
				if w.name == "spinning" {
					running++
					if th.Read != ReadStopped || th.State != "running" {
						t.Errorf("the running thread is %s, read %s", th.State, th.Read)
					}
				} else if th.Read != ReadAsleep && len(w.frames) > 0 { // some of the VM's own wake up now and then
					t.Errorf("%q was read %s", th.Name, th.Read)
				}
				for i, f := range w.frames {
					w.frames[i] = generatedName.ReplaceAllString(f, "$$$$Lambda.")
				}
				frames := javaFrames(th)
				if w.name == "spinning" && len(frames) > 0 && len(w.frames) > 0 && !strings.Contains(frames[0], ":") {
					// The thread may stand where code has no line, as between its entry from the
					// interpreter and the loop; the JDK lets it run on to a place that has one.
					w.frames[0] = lineNumber.ReplaceAllString(w.frames[0], ")")
				}
				if a, b := strings.Join(frames, "\n"), strings.Join(w.frames, "\n"); a != b {
					t.Errorf("%q is\n%s\nand not\n%s", w.name, a, b)
				}
				compared++
			}
			if compared < 30 || running != 1 {
				t.Errorf("%d threads compared, %d running", compared, running)
			}
			for i := range got.Threads {
				if th := &got.Threads[i]; th.Error != "" || th.End != "" || len(th.Frames) < 3 {
					t.Errorf("%q: error %q, end %q, %d frames", th.Name, th.Error, th.End, len(th.Frames))
				}
			}
		})
	}
}
