package winsuspend_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// The tests run candid.exe in Wine, on programs that run in Wine.

// built are the programs of Windows that the tests build, by their package.
var built struct {
	sync.Mutex
	paths map[string]string
	dir   string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

func buildWindows(t *testing.T, pkg string) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("Wine runs programs for x86-64 on such a machine")
	}
	built.Lock()
	defer built.Unlock()
	if path := built.paths[pkg]; path != "" {
		return path
	}
	if built.dir == "" {
		var err error
		if built.dir, err = os.MkdirTemp("", "candid wine *"); err != nil {
			t.Fatal(err)
		}
		built.paths = map[string]string{}
	}
	path := filepath.Join(built.dir, filepath.Base(pkg)+".exe")
	c := exec.Command("go", "build", "-o", path, pkg)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=windows", "GOARCH=amd64")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build %s for Windows: %v\n%s", pkg, err, out)
	}
	built.paths[pkg] = path
	return path
}

func candidExe(t *testing.T) string {
	return buildWindows(t, "github.com/candid-profiler/candid/cmd/candid")
}

// wine runs a program and returns what it printed and its exit code.
func wine(t *testing.T, dir string, args ...string) (out, errs string, code int) {
	t.Helper()
	patience := 3 * time.Minute
	if fixture.Full(t) {
		patience = 3 * time.Hour
	}
	c := fixture.Wine(t, args[0], args[1:]...)
	c.Dir = dir
	var o, e bytes.Buffer
	c.Stdout, c.Stderr, c.WaitDelay = &o, &e, 5*time.Second
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = c.Process.Kill() })
	err := c.Wait()
	if !late.Stop() {
		t.Fatalf("run %s in Wine: not done within %v: %v\n%s%s", strings.Join(args, " "), patience, err, o.String(), e.String())
	}
	return o.String(), e.String(), c.ProcessState.ExitCode()
}

// spin starts the test program and returns its process id as Windows numbers it.
func spin(t *testing.T, seconds int) int {
	t.Helper()
	source, err := os.ReadFile("testdata/spin.c")
	if err != nil {
		t.Fatal(err)
	}
	exe := fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "spin.exe", string(source), "-O2")
	return startWine(t, exe, strconv.Itoa(seconds))
}

// startWine starts a program that prints its process id first.
func startWine(t *testing.T, args ...string) int {
	t.Helper()
	c := fixture.Wine(t, args[0], args[1:]...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, convErr := strconv.Atoi(strings.TrimSpace(line))
	if convErr != nil {
		t.Fatalf("%s printed %q: %v", args[0], line, err)
	}
	return pid
}

// collapsed reads a file of collapsed stacks.
func collapsed(t *testing.T, path string) map[string]uint64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]uint64{}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		at := strings.LastIndexByte(line, ' ')
		n, err := strconv.ParseUint(line[at+1:], 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out[line[:at]] += n
	}
	return out
}

// recordCallers records a running program for 3 s to a file in dir, and checks that at least 99.9 % of the
// stacks that hold a name are right. It returns what candid printed.
func recordCallers(t *testing.T, dir string, pid int, file, name string, right func(stack string) bool) (errs string) {
	t.Helper()
	tooLittle := fixture.Watch(t)
	_, errs, code := wine(t, dir, candidExe(t), "record", "-p", strconv.Itoa(pid), "-d", "3s", "-F", "200", "--force", "-o", file)
	const noSamples = 5 // the exit code
	if code == noSamples {
		tooLittle("there are no samples: %s", errs)
		return errs
	}
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	var all, good uint64
	for stack, n := range collapsed(t, filepath.Join(dir, file)) {
		if !strings.Contains(stack, name) {
			continue
		}
		all += n
		if right(stack) {
			good += n
		} else {
			t.Logf("%d %s", n, stack)
		}
	}
	if all == 0 {
		tooLittle("no sample is of %s, in which the program is: %s", name, errs)
		return errs
	}
	if good*1000 < all*999 {
		t.Errorf("%d of %d have the callers that they must have:\n%s", good, all, errs)
	}
	return errs
}

// Every stack of a program's own threads has the callers that it must have.
func TestRecordNative(t *testing.T) {
	pid, dir := spin(t, 30), filepath.Join(t.TempDir(), "a b ä")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	recordCallers(t, dir, pid, "o ü.collapsed", "leaf_spin", func(stack string) bool {
		return strings.Contains(stack, "worker;outer_call;middle_call;leaf_spin") && strings.HasPrefix(strings.TrimPrefix(stack, "spin.exe;"), "RtlUserThreadStart;BaseThreadInitThunk")
	})
}

// A Go program is on stacks that Windows does not know of. Its calls of Windows are made on those that
// Windows knows, and have the goroutine below them that made the call.
func TestRecordGo(t *testing.T) {
	pid, dir := startWine(t, buildWindows(t, "./testdata/gospin"), "30"), t.TempDir()
	recordCallers(t, dir, pid, "go.collapsed", "main.leaf", func(stack string) bool {
		return strings.Contains(stack, "main.work;main.middle;main.leaf")
	})
	if _, err := os.Stat(filepath.Join(dir, "go.collapsed")); err != nil {
		return // recordCallers said why
	}
	const call = "runtime.asmcgocall"
	var calls, cut uint64
	for stack, n := range collapsed(t, filepath.Join(dir, "go.collapsed")) {
		if !strings.Contains(stack, call) {
			continue
		}
		calls += n
		if before, _, _ := strings.Cut(stack, call); !strings.Contains(before, "runtime.") {
			cut += n
			t.Logf("%d %s", n, stack)
		}
	}
	t.Logf("%d of %d calls of Windows have no callers", cut, calls)
	if cut*100 > calls {
		t.Errorf("%d of %d calls of Windows have no callers", cut, calls)
	}
}

// A program that candid starts is sampled, its output and its exit code are passed on.
func TestRecordLaunched(t *testing.T) {
	exe, dir := candidExe(t), t.TempDir()
	source, err := os.ReadFile("testdata/spin.c")
	if err != nil {
		t.Fatal(err)
	}
	prog := fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "spin.exe", string(source), "-O2")
	out, errs, code := wine(t, dir, exe, "record", "-o", "x.jfr", "--", prog, "2")
	if code != 7 {
		t.Errorf("exit code %d, the program's is 7\n%s", code, errs)
	}
	if _, err := strconv.Atoi(strings.TrimSpace(out)); err != nil {
		t.Errorf("the program's output is %q", out)
	}
	out, errs, code = wine(t, dir, exe, "report", "x.jfr")
	if code != 0 || !strings.Contains(out, "leaf_spin") || !strings.Contains(out, "mainCRTStartup") {
		t.Errorf("report: exit code %d\n%s%s", code, out, errs)
	}
	if _, _, code = wine(t, dir, exe, "record", "-o", "y.jfr", "--", "no-such-program"); code != 127 {
		t.Errorf("a program that does not exist: exit code %d, not 127", code)
	}
	if _, _, code = wine(t, dir, exe, "record", "-p", "999996", "-o", "y.jfr"); code != 4 {
		t.Errorf("a process that does not exist: exit code %d, not 4", code)
	}
}

// chain compiles a program whose methods call each other, and returns its directory.
func chain(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Chain.java"), []byte(`public class Chain {
  static volatile long sink;
  static long leaf(long n) { long s = 0; for (long i = 0; i < n; i++) s += i ^ (s >> 3); return s; }
  static long third(long n) { return leaf(n) + 1; }
  static long second(long n) { return third(n) * 3; }
  static long first(long n) { return second(n) - 1; }
  public static void main(String[] a) {
    System.out.println(ProcessHandle.current().pid());
    long end = System.currentTimeMillis() + Long.parseLong(a[0]) * 1000;
    while (System.currentTimeMillis() < end) sink += first(100000);
  }
}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fixture.ClassesTo(dir, fixture.JDKTool(t, 11, "javac"), filepath.Join(dir, "Chain.java")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Java and native frames are seen together.
func TestRecordJava(t *testing.T) {
	java, dir := fixture.WindowsJVM(t), chain(t)
	modes := []string{"-XX:+TieredCompilation"}
	if fixture.Full(t) {
		modes = append(modes, "-XX:TieredStopAtLevel=1", "-Xint")
	}
	for _, mode := range modes {
		pid := startWine(t, java, mode, "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chain.*", "-cp", dir, "Chain", "60")
		recordCallers(t, dir, pid, "j.collapsed", "Chain.leaf", func(stack string) bool {
			return strings.Contains(stack, "Chain.main;Chain.first;Chain.second;Chain.third;Chain.leaf") && strings.Contains(stack, "RtlUserThreadStart")
		})
	}
}

// A VM that candid starts is found while it starts, however long that takes: its first Java methods
// have names, and the callers that they must have.
func TestRecordJavaLaunched(t *testing.T) {
	exe, java, dir := candidExe(t), fixture.WindowsJVM(t), chain(t)
	fixture.Attempts(t, 3, func() (late string) {
		out, errs, code := wine(t, dir, exe, "record", "-F", "200", "--force", "-o", "j.collapsed", "--", java, "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chain.*", "-cp", dir, "Chain", "2")
		if code != 0 || !strings.Contains(errs, "DebugNonSafepoints") {
			t.Fatalf("exit code %d\n%s%s", code, out, errs)
		}
		var all, nameless, chains, wrong uint64
		for stack, n := range collapsed(t, filepath.Join(dir, "j.collapsed")) {
			all += n
			if strings.Contains(stack, "[anon]") || strings.Contains(stack, "[unknown]") {
				nameless += n
				t.Logf("%d %s", n, stack)
			}
			if strings.Contains(stack, "Chain.leaf") {
				chains += n
				if !strings.Contains(stack, "Chain.main;Chain.first;Chain.second;Chain.third;Chain.leaf") || !strings.Contains(stack, "RtlUserThreadStart") {
					wrong += n
					t.Logf("%d %s", n, stack)
				}
			}
		}
		// One of the few that a busy machine leaves is no rate: a copy of which Wine gave nothing says
		// that it is truncated.
		if wrong > max(chains/100, 1) {
			t.Errorf("%d of %d samples of the program's own methods have wrong callers:\n%s", wrong, chains, errs)
		}
		if chains == 0 || nameless*20 > all {
			return fmt.Sprintf("of %d samples %d are of the program's own methods, and %d of code that nothing names:\n%s", all, chains, nameless, errs)
		}
		return ""
	})
}

// However candid is ended, no thread stays suspended; what the program has suspended itself stays so.
func TestEndedWhileSampling(t *testing.T) {
	// In Wine a program takes up to seconds to start: as many rounds are made as there is time for.
	rounds, minutes := 4, 3.0
	if fixture.Full(t) {
		rounds, minutes = 1000, 9
	}
	killer, exe, pid := buildWindows(t, "./testdata/killer"), candidExe(t), spin(t, int(60*(minutes+4)))
	args := []string{exe, "record", "-p", strconv.Itoa(pid), "-d", "60s", "-F", "20000", "--force", "-o", "x.jfr"}
	for _, what := range []string{"candid", "guard"} {
		n, limit := rounds, minutes*3/4
		if what == "guard" {
			n, limit = (rounds+3)/4, minutes/4
		}
		within := time.Duration(limit * float64(time.Minute))
		out, errs, code := wine(t, t.TempDir(), append([]string{killer, strconv.Itoa(pid), strconv.Itoa(n), within.String(), what}, args...)...)
		if code != 0 {
			t.Fatalf("%s ended: exit code %d\n%s%s", what, code, out, errs)
		}
		done := 0
		if _, err := fmt.Sscan(out, &done); err != nil || done == 0 {
			t.Errorf("%s ended: no round was made within %v:\n%s%s", what, within, out, errs)
		}
		t.Logf("%s ended: %s", what, strings.TrimSpace(out))
	}
}

// ps lists programs, doctor looks at one, and the help speaks of the system that it is on.
func TestCommands(t *testing.T) {
	exe, pid, dir := candidExe(t), spin(t, 60), t.TempDir()
	out, errs, code := wine(t, dir, exe, "ps", "-a", "--json")
	if code != 0 || !strings.Contains(out, fmt.Sprintf(`"pid": %d,`, pid)) || !strings.Contains(out, "spin.exe") {
		t.Errorf("ps: exit code %d\n%s%s", code, out, errs)
	}
	out, errs, code = wine(t, dir, exe, "doctor", "-p", strconv.Itoa(pid))
	if code != 0 || !strings.Contains(out, "its memory can be read") {
		t.Errorf("doctor: exit code %d\n%s%s", code, out, errs)
	}
	if out, errs, code = wine(t, dir, exe, "--help"); code != 0 || !strings.Contains(out, "programs on Windows.") {
		t.Errorf("--help: exit code %d\n%s%s", code, out, errs)
	}
}
