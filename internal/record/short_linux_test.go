package record

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// actBrief makes the test binary a Go program that works for 50 ms of CPU time.
const actBrief = "CANDID_TEST_BRIEF"

func init() {
	if os.Getenv(actBrief) != "" {
		// The time for starting, which is half as much on some machines, does not count, nor does
		// that of the collector's threads, which may still be busy with it.
		runtime.LockOSThread()
		for begun := ownCPU(); ownCPU()-begun < 50*time.Millisecond; {
			briefWork()
		}
		os.Exit(0)
	}
}

// ownCPU returns the CPU time that this thread has used.
func ownCPU() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

//go:noinline
func briefWork() {
	for i := range 1 << 16 {
		runtime.KeepAlive(i)
	}
}

// stacks sums up the outcome of a profile's samples.
type stacks struct{ all, broken, nameless, with int }

// look counts the samples, and those with a function of that name.
func (s *stacks) look(t *testing.T, p *profile.Profile, function string) {
	t.Helper()
	for _, sm := range p.Samples {
		s.all++
		if sm.End != walk.EndComplete {
			s.broken++
			t.Logf("%v: %s", sm.End, functions(p, sm.Node))
		}
		names := functions(p, sm.Node)
		if strings.Contains(names, "[unknown]") || sm.Node == profile.RootNode {
			s.nameless++
			t.Logf("a frame has no name: %s", names)
		}
		if function != "" && strings.Contains(names, function) {
			s.with++
		}
	}
}

// functions returns a stack's functions, innermost first.
func functions(p *profile.Profile, node uint32) string {
	var names []string
	for ; node != profile.RootNode; node = p.Nodes[node].Parent {
		names = append(names, p.Funcs[p.Frames[p.Nodes[node].Frame].Func].Name)
	}
	return strings.Join(names, " < ")
}

// brief is a program whose function FUNCTION works for 30 ms of CPU time, or for as many as its
// argument says.
const brief = `
#include <time.h>
#include <stdlib.h>
#include <sys/prctl.h>
static double used(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) double FUNCTION(double x) { for (volatile int i = 0; i < 20000; i++) x += i * x; return x; }
int main(int n, char **v) { double b = used(), x = 1, ms = n > 1 ? atoi(v[1]) : 30; prctl(PR_SET_NAME, "FUNCTION"); while (used() - b < ms / 1e3) x = FUNCTION(x); return x == 42; }
`

func briefC(t *testing.T, function string) string {
	return fixture.C(t, strings.ReplaceAll(brief, "FUNCTION", function))
}

// Programs that ended before the first look at their samples are walked and named like others.
func TestShortPrograms(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, function string
		ms             int // CPU time of the function
		argv           []string
	}{
		{"C", "grind", 30, []string{briefC(t, "grind")}},
		{"Go", "record.briefWork", 50, []string{"env", actBrief + "=1", self}},
	} {
		for _, engine := range []string{"auto", "perf", "perf-thread"} {
			t.Run(c.name+"/"+engine, func(t *testing.T) {
				var s stacks
				times := 0
				// A hundred stacks do not show what a hundredth of them is: if too many seem to be
				// wrong, more are recorded.
				fixture.Settles(t, 6, func() string {
					for range 4 {
						s.look(t, run(t, Options{Command: c.argv, Engine: engine}).Profile, c.function)
						times++
					}
					// The time beyond that in the function is the program's start, which is longer
					// on slower machines.
					work := min(s.all, times*c.ms*997/1000)
					if s.all < 20*times || s.broken*100 > s.all || s.nameless*100 > s.all || s.with*100 < work*80 {
						return fmt.Sprintf("of %d stacks %d are broken, %d have a frame without a name, %d are in %s", s.all, s.broken, s.nameless, s.with, c.function)
					}
					return ""
				})
			})
		}
	}
}

// A Java VM is examined while it lives, however short that is.
func TestShortJava(t *testing.T) {
	java := fixture.JDKTool(t, 17, "java")
	best := ""
	for range 5 { // a busy machine may not let candid run in time
		var s stacks
		for range 2 {
			r := run(t, Options{Command: []string{java, "-version"}})
			s.look(t, r.Profile, "JavaMain")
		}
		if s.all >= 20 && s.broken*100 <= s.all && s.with*2 > s.all {
			return
		}
		best = fmt.Sprintf("of %d stacks %d are broken, %d are below JavaMain", s.all, s.broken, s.with)
	}
	t.Error(best)
}

// Each sample of a script belongs to the program that it was taken of, and is complete.
func TestShortChildren(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	content := make([]byte, 300<<10)
	for i := range content {
		content[i] = byte(i * i >> 7)
	}
	if err := os.WriteFile(data, content, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "i=0; while [ $i -lt 40 ]; do gzip -c '" + data + "' >/dev/null; sha256sum '" + data + "' '" + data + "' '" + data + "' >/dev/null; i=$((i+1)); done"
	for _, engine := range []string{"auto", "perf"} {
		t.Run(engine, func(t *testing.T) {
			var r *Result
			var p *profile.Profile
			var s stacks
			for range 4 { // a busy machine may not let candid run in time
				r = run(t, Options{Command: []string{"sh", "-c", script}, Children: true, Engine: engine, Hz: 1999})
				p, s = r.Profile, stacks{}
				if s.look(t, p, ""); s.broken*100 <= s.all && s.nameless*100 <= s.all {
					break
				}
			}
			if s.broken*100 > s.all || s.nameless*100 > s.all {
				t.Errorf("of %d stacks %d are broken, %d have a frame without a name", s.all, s.broken, s.nameless)
			}
			command := map[int]string{}
			for _, pr := range p.Processes {
				command[pr.PID] = filepath.Base(strings.Fields(pr.Command + " ?")[0])
			}
			seen := map[string]int{}
			for _, sm := range p.Samples {
				pid := p.Threads[sm.Thread].PID
				for node := sm.Node; node != profile.RootNode; node = p.Nodes[node].Parent {
					switch m := p.Funcs[p.Frames[p.Nodes[node].Frame].Func].Module; m {
					case "gzip", "sha256sum":
						seen[m]++
						if c := command[pid]; c != m && c != "sh" {
							t.Fatalf("code of %s in process %d, which is %q", m, pid, c)
						}
					}
				}
			}
			if seen["gzip"] < 40 || seen["sha256sum"] < 40 {
				t.Errorf("frames by program: %v", seen)
			}
		})
	}
}

// A program whose file has been replaced meanwhile is not named by the new file, even if that got
// the inode number of the old one.
func TestShortReplaced(t *testing.T) {
	one, other := briefC(t, "firstly"), briefC(t, "secondly")
	file := filepath.Join(t.TempDir(), "program")
	script := fmt.Sprintf("for i in 1 2 3 4 5 6 7 8 9 10; do for p in '%s' '%s'; do rm -f '%[3]s'; cp $p '%[3]s'; '%[3]s' 3; done; done", one, other, file)
	p := run(t, Options{Command: []string{"sh", "-c", script}, Children: true, Engine: "perf", Hz: 4999}).Profile
	samples := 0
	for _, sm := range p.Samples {
		names := functions(p, sm.Node)
		for mine, not := range map[string]string{"firstly": "secondly", "secondly": "firstly"} {
			if p.Threads[sm.Thread].Name == mine {
				samples++
				if strings.Contains(names, not) {
					t.Fatalf("thread %s: %s", mine, names)
				}
			}
		}
	}
	if samples < 200 {
		t.Errorf("%d samples", samples)
	}
}
