package hotspot

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/candid-profiler/candid/internal/fixture"
)

// stackOfJstack is a thread as the JDK's own tool shows it.
type stackOfJstack struct {
	name   string
	java   bool // it has a Java thread number
	header string
	state  string   // "WAITING (parking)"
	locks  []string // "- waiting to lock <0x...> (a java.lang.Object)"
	frames []jstackFrame
}

type jstackFrame struct{ function, file, line string }

var (
	jstackThread = regexp.MustCompile(`^"(.*)" (#\d+ )?.*nid=(0x[0-9a-f]+|\d+)`)
	jstackLine   = regexp.MustCompile(`^\s+at (.*)\((.*)\)$`)
)

// named reports whether a thread of that name is this one. JDK 8's tool decodes what the VM sends
// 256 bytes at a time, so a character of several bytes may come out as replacement characters if it
// crosses a boundary.
func (s *stackOfJstack) named(name string) bool {
	if !strings.ContainsRune(s.name, utf8.RuneError) {
		return name == s.name
	}
	parts := strings.FieldsFunc(s.name, func(r rune) bool { return r == utf8.RuneError })
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	pattern := strings.Join(parts, "[^[:ascii:]]")
	if strings.HasPrefix(s.name, string(utf8.RuneError)) {
		pattern = "[^[:ascii:]]" + pattern
	}
	if strings.HasSuffix(s.name, string(utf8.RuneError)) {
		pattern += "[^[:ascii:]]"
	}
	return regexp.MustCompile("^" + pattern + "$").MatchString(name)
}

// jstack asks the JDK for all stacks, by thread id.
func jstack(t testing.TB, major, pid int) map[int]*stackOfJstack {
	t.Helper()
	tool := fixture.JDKTool(t, major, "jcmd")
	cmd := exec.Command(tool, fmt.Sprint(pid), "Thread.print")
	cmd.Env = append(os.Environ(), "JAVA_TOOL_OPTIONS=-Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8 -Xmx64m")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("jcmd of JDK %d does not work here: %v\n%s", major, err, out)
	}
	threads := make(map[int]*stackOfJstack)
	var now *stackOfJstack
	for _, l := range strings.Split(string(out), "\n") {
		if m := jstackThread.FindStringSubmatch(l); m != nil {
			tid, err := strconv.ParseInt(m[3], 0, 64)
			if err != nil {
				t.Fatalf("%q: %v", l, err)
			}
			now = &stackOfJstack{name: m[1], java: m[2] != "", header: l}
			threads[int(tid)] = now
			continue
		}
		if state, ok := strings.CutPrefix(l, "   java.lang.Thread.State: "); ok && now != nil {
			now.state = state
		}
		if text := strings.TrimSpace(l); now != nil && strings.HasPrefix(text, "- ") {
			now.locks = append(now.locks, text)
		}
		if m := jstackLine.FindStringSubmatch(l); m != nil && now != nil {
			f := jstackFrame{function: m[1]}
			// java.base@17.0.19/java.lang.Thread.sleep(Native Method)
			if i := strings.IndexByte(f.function, '@'); i >= 0 {
				if j := strings.IndexByte(f.function[i:], '/'); j >= 0 {
					f.function = f.function[i+j+1:]
				}
			}
			// The module's version is after the @ in both; file and line last.
			where := m[2]
			if i := strings.LastIndexByte(where, '/'); i >= 0 {
				where = where[i+1:]
			}
			f.file, f.line, _ = strings.Cut(where, ":")
			now.frames = append(now.frames, f)
		}
	}
	return threads
}

func TestNamedAcrossChunks(t *testing.T) {
	for _, c := range []struct {
		jstack, name string
		want         bool
	}{
		{"main", "main", true},
		{"main", "Main", false},
		{"\ufffd\ufffd中-unicode", "é中-unicode", true},
		{"é\ufffd\ufffd\ufffd-unicode", "é中-unicode", true},
		{"é\ufffd\ufffd\ufffd", "é中", true},
		{"\ufffd\ufffd中-unicode", "中-unicode", false},
		{"\ufffd\ufffd中-unicode", "e中-unicode", false},
		{"\ufffd\ufffd中.unicode", "é中-unicode", false},
	} {
		if got := (&stackOfJstack{name: c.jstack}).named(c.name); got != c.want {
			t.Errorf("jstack's %q is %q: %v", c.jstack, c.name, got)
		}
	}
}

// The names of Java threads, read from the heap, are those that jstack prints.
func TestThreadNames(t *testing.T) {
	forMajors(t, func(t *testing.T, major int) {
		for _, flags := range fixture.HeapFlags(t, major) {
			t.Run(flags, func(t *testing.T) {
				t.Parallel()
				p := startProgram(t, major, append(strings.Fields(flags), "Parked", "100")...)
				vm := openVM(t, p)
				// A compiler thread that has nothing to do may end between two looks.
				fixture.Attempts(t, 4, func() string {
					want := jstack(t, major, p.PID)
					vm.BeginBatch()
					began := time.Now()
					got := vm.Threads.ThreadNames()
					t.Logf("%s, %d names in %v", vm.GC(), len(got), time.Since(began))
					var wrong []string
					n := 0
					for tid, w := range want {
						if !w.java {
							continue
						}
						n++
						if name, ok := got[tid]; !ok || !w.named(name) {
							wrong = append(wrong, fmt.Sprintf("thread %d is %q (%v), jstack says %q", tid, name, ok, w.name))
						}
					}
					for tid, name := range got {
						if one, ok := vm.Threads.ThreadName(uint32(tid)); !ok || one != name {
							wrong = append(wrong, fmt.Sprintf("asked alone, thread %d is %q (%v), not %q", tid, one, ok, name))
						}
					}
					if n < 10 {
						wrong = append(wrong, fmt.Sprintf("jstack shows only %d Java threads", n))
					}
					return strings.Join(wrong, "\n")
				})
				if _, ok := vm.Threads.ThreadName(uint32(os.Getpid())); ok {
					t.Error("a thread of ours has a name in Java")
				}
			})
		}
	})
}
