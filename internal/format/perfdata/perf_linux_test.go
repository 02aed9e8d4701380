package perfdata

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/format/perfscript"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// program calls leaf by middle by outer, in its first thread by main and in a second one by run. It
// does the same again in a child that it starts.
const program = `#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
volatile unsigned long sum;
__attribute__((noinline)) unsigned long leaf(unsigned long x) {
	for (int i = 0; i < 3000; i++) x = x * 31 + i;
	sum += x;
	return x;
}
static inline __attribute__((always_inline)) unsigned long woven(unsigned long x) { return leaf(x) ^ 5; }
__attribute__((noinline)) unsigned long middle(unsigned long x) {
	for (int i = 0; i < 100; i++) x = woven(x) + 1;
	return x;
}
__attribute__((noinline)) unsigned long outer(unsigned long x) {
	for (int i = 0; i < 70; i++) x = middle(x) + 1;
	return x;
}
__attribute__((noinline)) void *run(void *arg) {
	sum += outer(2) + 1;
	return arg;
}
int main(int argc, char **argv) {
	pthread_t t;
	pthread_create(&t, 0, run, 0);
	pthread_setname_np(t, "my thread 2");
	sum += outer(1) + 1;
	pthread_join(t, 0);
	if (argc == 1 && fork() == 0) execl(argv[0], "again", "x", (char *)0);
	wait(0);
	return 0;
}
`

// built compiles the program and returns its path.
func built(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, out := filepath.Join(dir, "chain.c"), filepath.Join(dir, "chain")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", out, source, "-lpthread")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	return out
}

// recorded runs perf record and returns the file.
func recorded(t *testing.T, args ...string) string {
	t.Helper()
	return recordedKeeping(t, append([]string{"-N"}, args...)...)
}

// recordedKeeping is recorded, but perf keeps copies of files below HOME.
func recordedKeeping(t *testing.T, args ...string) string {
	t.Helper()
	fixture.Tool(t, "perf")
	file := filepath.Join(t.TempDir(), "perf.data")
	args = append([]string{"record"}, args...)
	var out *os.File
	if !slices.Contains(args, "-") {
		args = slices.Insert(args, 1, "-o", file)
	} else {
		var err error
		if out, err = os.Create(file); err != nil {
			t.Fatal(err)
		}
		defer out.Close()
	}
	var stderr bytes.Buffer
	var err error
	for range 20 {
		cmd := exec.Command("perf", args...)
		stderr.Reset()
		if cmd.Stderr = &stderr; out != nil {
			cmd.Stdout = out
		}
		err = cmd.Run()
		// The kernel may have no memory for perf's rings for a moment, while tests that run in
		// parallel have rings too. It says so before it starts the program.
		if err == nil || !bytes.Contains(stderr.Bytes(), []byte("failed to mmap with 12")) {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if err != nil {
		if regexp.MustCompile(`(?i)permission|not permitted|paranoid|access to performance`).Match(stderr.Bytes()) {
			t.Skipf("perf may not record here: %s", stderr.Bytes())
		}
		t.Fatalf("perf %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return file
}

// read reads a recording with candid.
func read(t *testing.T, file string) *profile.Profile {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Read(f, st.Size(), st.ModTime())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// perf runs perf with a recording as its input.
func perf(t *testing.T, file string, args ...string) string {
	t.Helper()
	args = slices.Insert(args, 1, "-i", file)
	cmd := exec.Command("perf", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBUGINFOD_URLS=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("perf %v: %v", args, err)
	}
	return string(out)
}

// one is a sample in a form that both candid and perf script yield.
type one struct {
	pid, tid int
	time     uint64 // ns
	event    string
	period   uint64
	stack    string // functions of the program and modules of others, the innermost first
}

var (
	headLine  = regexp.MustCompile(`^\s*.*?\s+(-?\d+)/(-?\d+)\s+(\d+)\.(\d{9}):\s+(\d+)\s+(\S+):\s*(.*)$`)
	frameLine = regexp.MustCompile(`^\s*([0-9a-f]+) (.*) \((.*)\)$`)
)

// functions are those of the program's source. Others that linkers add (jumps to libraries, code
// before main) have no size, or no name, and each tool has another name for them.
var functions = []string{"leaf", "middle", "outer", "run", "main"}

// told parses the output of perf script, independently of the package that does so for users.
func told(t *testing.T, text, binary string) []one {
	t.Helper()
	var out []one
	add := func(o *one, m []string) {
		name := m[2]
		if m[3] == "inlined" {
			return
		}
		if m[3] != binary || !slices.Contains(functions, name) {
			name = filepath.Base(m[3])
		}
		o.stack += name + ";"
	}
	for line := range strings.SplitSeq(text, "\n") {
		if m := headLine.FindStringSubmatch(line); m != nil {
			n := func(i int) uint64 {
				v, err := strconv.ParseUint(m[i], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			// A thread that is ending has no numbers any more: -1.
			pid, _ := strconv.Atoi(m[1])
			tid, _ := strconv.Atoi(m[2])
			out = append(out, one{pid: pid, tid: tid, time: n(3)*1e9 + n(4), period: n(5), event: m[6]})
			if f := frameLine.FindStringSubmatch(m[7]); f != nil {
				add(&out[len(out)-1], f)
			}
		} else if m := frameLine.FindStringSubmatch(line); m != nil {
			add(&out[len(out)-1], m)
		} else if strings.TrimSpace(line) != "" {
			t.Fatalf("what is %q", line)
		}
	}
	return out
}

// ours returns the samples of a profile in the same form; times count from first.
func ours(p *profile.Profile, binary string, first uint64) []one {
	var out []one
	for _, s := range p.Samples {
		th := p.Threads[s.Thread]
		o := one{pid: th.PID, tid: th.TID, time: s.Time + first, event: p.Events[s.Event].Name, period: s.Weight}
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := p.Frames[p.Nodes[n].Frame]
			fn := p.Funcs[f.Func]
			switch {
			case f.Kind == walk.KindInlined:
				continue
			case fn.Module == filepath.Base(binary) && slices.Contains(functions, fn.Name):
				o.stack += fn.Name + ";"
			case fn.Module == "":
				o.stack += "[unknown];"
			default:
				o.stack += fn.Module + ";"
			}
		}
		out = append(out, o)
	}
	return out
}

func inOrder(list []one) []one {
	slices.SortStableFunc(list, func(a, b one) int {
		return strings.Compare(fmt.Sprintf("%020d %s %d", a.time, a.event, a.tid), fmt.Sprintf("%020d %s %d", b.time, b.event, b.tid))
	})
	return list
}

// TestSameAsPerf: every sample of a recording has the same process, thread, time, event, weight and
// stack as in the output of perf script, and perf report counts as many.
func TestSameAsPerf(t *testing.T) {
	binary := built(t)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"frame pointers", []string{"-c", "1000000", "-e", "cpu-clock:u", "-g", binary}},
		{"compressed", []string{"-z", "-c", "1000000", "-e", "cpu-clock:u", "-g", binary}},
		{"a pipe", []string{"-c", "1000000", "-e", "cpu-clock:u", "-g", "-o", "-", binary}},
		{"two events", []string{"-c", "1000000", "-e", "cpu-clock:u,task-clock:u", "-g", binary}},
		{"a rate, no call chains", []string{"-F", "999", "-e", "cpu-clock:u", binary}},
		{"all CPUs", []string{"-a", "-c", "1000000", "-e", "cpu-clock:u", "-g", "--", binary}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := recorded(t, c.args...)
			p := read(t, file)
			text := perf(t, file, "script", "--ns", "-F", "comm,pid,tid,time,period,event,ip,sym,dso")
			want := inOrder(told(t, text, binary))
			if len(want) < 10 {
				t.Fatalf("perf tells of %d samples", len(want))
			}
			if len(p.Samples) != len(want) {
				t.Fatalf("%d samples, perf has %d", len(p.Samples), len(want))
			}
			got := inOrder(ours(p, binary, want[0].time))
			of := func(o *one) *one {
				if c.name == "all CPUs" && !strings.Contains(o.stack, "middle;") {
					o.stack = "" // other processes may replace or remove their files in the meantime
				}
				return o
			}
			for i := range want {
				if *of(&got[i]) != *of(&want[i]) {
					t.Errorf("sample %d:\n got %+v\nwant %+v", i, got[i], want[i])
				}
			}
			report := perf(t, file, "report", "--stdio", "-g", "none")
			counted := regexp.MustCompile(`# Samples: (\d+)(K?)\s+of event '(.*)'`).FindAllStringSubmatch(report, -1)
			if len(counted) != len(p.Events) {
				t.Errorf("perf report tells of %q, candid of %v", counted, p.Events)
			}
			for i, m := range counted[:min(len(counted), len(p.Events))] {
				n := 0
				for _, s := range p.Samples {
					if int(s.Event) == i {
						n++
					}
				}
				rounded := m[2] == "K"
				if m[3] != p.Events[i].Name || !rounded && m[1] != strconv.Itoa(n) || rounded && n < 1000 {
					t.Errorf("perf report: %s%s samples of %s, candid: %d of %s", m[1], m[2], m[3], n, p.Events[i].Name)
				}
			}
			if !slices.ContainsFunc(p.Threads, func(th profile.Thread) bool { return th.Name == "my thread 2" }) {
				t.Errorf("threads %+v", p.Threads)
			}
			// The text of the same recording yields the same profile.
			script, err := perfscript.Read(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			again := inOrder(ours(script, binary, want[0].time))
			for i := range again {
				if *of(&again[i]) != *of(&want[i]) {
					t.Errorf("sample %d of the text:\n got %+v\nwant %+v", i, again[i], want[i])
				}
			}
		})
	}
}

// TestWalksCopies: the stacks of --call-graph dwarf are those of the program, down to its first
// function.
func TestWalksCopies(t *testing.T) {
	binary := built(t)
	file := recorded(t, "-c", "1000000", "-e", "cpu-clock:u", "--call-graph", "dwarf,4096", binary)
	p := read(t, file)
	whole := map[string]int{}
	in, cut := 0, 0
	for _, s := range p.Samples {
		var names []string
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			if fn := p.Funcs[p.Frames[p.Nodes[n].Frame].Func]; fn.Module == filepath.Base(binary) {
				names = append(names, fn.Name)
			}
		}
		if len(names) == 0 || names[0] != "leaf" {
			continue
		}
		in++
		stack := strings.Join(names, ";")
		switch {
		case s.End != walk.EndComplete:
			// The kernel copies what is there at that moment: a page of the stack that is being
			// moved is missing. The rest must be right all the same.
			cut++
			if !strings.HasPrefix("leaf;woven;middle;outer;main", stack) && !strings.HasPrefix("leaf;woven;middle;outer;run", stack) {
				t.Errorf("%s ends with %v", stack, s.End)
			}
			continue
		case stack != "leaf;woven;middle;outer;main;_start" && stack != "leaf;woven;middle;outer;run":
			t.Errorf("a stack %q", stack)
		}
		whole[stack]++
	}
	if in < 10 || len(whole) != 2 || cut > in/10 {
		t.Errorf("%d samples in leaf, %d cut: %v", in, cut, whole)
	}
	if n := strings.Count(perf(t, file, "script", "-F", "event,ip"), "cpu-clock"); n != len(p.Samples) {
		t.Errorf("%d samples, perf has %d", len(p.Samples), n)
	}
}

// TestKernelFunctions: kernel frames have the names that perf gives them, for innermost functions,
// as far as perf names them.
func TestKernelFunctions(t *testing.T) {
	file := recorded(t, "-c", "100000", "-e", "cpu-clock:k", "-g", "dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=500")
	p := read(t, file)
	var want, got []string
	for line := range strings.SplitSeq(perf(t, file, "script", "-G", "-F", "time,ip,sym"), "\n") {
		if _, rest, ok := strings.Cut(line, ": "); ok {
			_, name, _ := strings.Cut(strings.TrimSpace(rest), " ")
			want = append(want, name)
		}
	}
	for _, s := range p.Samples {
		fn := p.Funcs[p.Frames[p.Nodes[s.Node].Frame].Func]
		if p.Frames[p.Nodes[s.Node].Frame].Kind != walk.KindKernel {
			t.Errorf("%s is not of the kernel", fn.Name)
		}
		if fn.Raw != "" {
			fn.Name = fn.Raw
		}
		got = append(got, fn.Name)
	}
	if slices.Contains(want, "[unknown]") {
		t.Skip("the kernel hides its addresses here")
	}
	if len(want) < 5 || len(got) != len(want) {
		t.Fatalf("%d samples, perf has %d", len(got), len(want))
	}
	text, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		if f := strings.Fields(line); len(f) > 2 {
			at[f[2]] += f[0] + " "
		}
	}
	for i := range want {
		// If an address has several names any of them may be chosen.
		if got[i] != want[i] && (at[got[i]] == "" || at[got[i]] != at[want[i]]) {
			t.Errorf("sample %d is in %s, perf says %s", i, got[i], want[i])
		}
	}
}

// TestKeptFile: a program that is gone is named by the copy that perf kept.
func TestKeptFile(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	binary := built(t)
	file := recordedKeeping(t, "-c", "1000000", "-e", "cpu-clock:u", "--call-graph", "dwarf,4096", binary)
	if err := os.Remove(binary); err != nil {
		t.Fatal(err)
	}
	p := read(t, file)
	for _, name := range []string{"leaf", "woven", "middle", "outer", "main", "run"} {
		if !slices.ContainsFunc(p.Funcs, func(fn profile.Func) bool { return fn.Name == name && fn.Module == filepath.Base(binary) }) {
			t.Errorf("no %s: %q", name, p.Meta.Notes)
		}
	}
	t.Setenv("HOME", t.TempDir())
	p = read(t, file)
	for _, fn := range p.Funcs {
		if fn.Module == filepath.Base(binary) && !fn.NoName {
			t.Errorf("%s has a name without a file", fn.Name)
		}
	}
}

// TestChangedFile: a program that was compiled again after the recording is not used for names.
func TestChangedFile(t *testing.T) {
	binary := built(t)
	testChangedFile(t, binary, "3001", "-B") // without build ids
	testChangedFile(t, binary, "3002")
}

func testChangedFile(t *testing.T, binary, loops string, args ...string) {
	t.Helper()
	file := recorded(t, append(args, "-c", "1000000", "-e", "cpu-clock:u", "-g", binary)...)
	known := read(t, file)
	if !slices.ContainsFunc(known.Funcs, func(fn profile.Func) bool { return fn.Name == "outer" }) {
		t.Errorf("%v: before the change there were no names either: %d samples, %q, %v", args, len(known.Samples), known.Meta.Notes, known.Funcs)
	}
	other := strings.ReplaceAll(program, "3000", loops)
	if err := os.WriteFile(binary+".c", []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("gcc", "-g", "-o", binary, binary+".c", "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	// An old modification time, which a package manager sets too.
	if err := os.Chtimes(binary, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	p := read(t, file)
	for _, fn := range p.Funcs {
		if fn.Module == filepath.Base(binary) && !fn.NoName {
			t.Errorf("%s has a name", fn.Name)
		}
	}
	if !slices.ContainsFunc(p.Meta.Notes, func(n string) bool { return strings.Contains(n, binary) }) {
		t.Errorf("notes %q", p.Meta.Notes)
	}
}
