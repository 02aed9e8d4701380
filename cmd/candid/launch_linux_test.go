package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// launched records a command quietly to a file that no one reads.
func launched(t testing.TB, argv ...string) *exec.Cmd {
	return command(t, append([]string{"record", "-q", "-o", os.DevNull, "--format", "collapsed", "--"}, argv...)...)
}

func TestLaunchExitCodes(t *testing.T) {
	able(t)
	for script, code := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143, "kill -KILL $$": 137, "exit 255": 255} {
		r := finish(t, launched(t, "sh", "-c", script))
		if r.code != code || r.err != "" || r.out != "" {
			t.Errorf("%s: exit code %d, want %d; printed %q %q", script, r.code, code, r.out, r.err)
		}
	}
	finish(t, launched(t, "no-such-command-here")).refused(t, exitNotFound, "no-such-command-here", "not found")
	finish(t, launched(t, "/no/such/file")).refused(t, exitNotFound, "/no/such/file")
	finish(t, launched(t, "/etc/passwd")).refused(t, exitNotExecutable, "/etc/passwd", "executed")
	orphan := filepath.Join(t.TempDir(), "orphan")
	if err := os.WriteFile(orphan, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	finish(t, launched(t, orphan)).refused(t, exitNotFound, "interpreter")
	candid(t, "record", "-o", "/no/such/dir/x.html", "--", "true").refused(t, exitCandidFailed, "/no/such/dir")
}

// The program reads and writes as if candid were not there.
func TestLaunchPassesStreams(t *testing.T) {
	able(t)
	c := launched(t, "sh", "-c", "cat; echo to stderr >&2")
	text := strings.Repeat("line after line\n", 20000)
	c.Stdin = strings.NewReader(text)
	r := finish(t, c)
	if r.out != text {
		t.Errorf("%d bytes came back, %d were sent", len(r.out), len(text))
	}
	if r.err != "to stderr\n" {
		t.Errorf("standard error: %q", r.err)
	}
}

// The program's environment, arguments, limits, signals and files are what they would have been.
func TestLaunchChangesNothing(t *testing.T) {
	able(t)
	look := `env -0; tr '\0' '|' < /proc/$$/cmdline; ls /proc/self/fd; grep -E '^(Sig|Shd|Cpus_allowed:|Uid|Seccomp|NoNewPrivs|CapEff)' /proc/self/status | grep -v SigQ; ulimit -a; umask; pwd; cut -d' ' -f19 /proc/$$/stat`
	env := []string{"PATH=" + os.Getenv("PATH"), "EMPTY=", "ODD= a=b\nc", "GOGC=50", "JAVA_HOME=/x"}
	dir := t.TempDir()
	run := func(c *exec.Cmd) string {
		c.Env, c.Dir = env, dir
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %v", c.Args, err)
		}
		return string(out)
	}
	plain, profiled := run(exec.Command("sh", "-c", look)), run(launched(t, "sh", "-c", look))
	if plain != profiled {
		t.Errorf("without candid:\n%q\nwith candid:\n%q", plain, profiled)
	}
	// Signals that were ignored before stay ignored.
	ignoring := func(c *exec.Cmd) *exec.Cmd {
		return exec.Command("sh", append([]string{"-c", `trap '' INT HUP; exec "$0" "$@"`}, c.Args...)...)
	}
	signals := "exec grep -E '^Sig(Blk|Ign)' /proc/self/status"
	plain, profiled = run(ignoring(exec.Command("sh", "-c", signals))), run(ignoring(launched(t, "sh", "-c", signals)))
	if plain != profiled {
		t.Errorf("with ignored signals, without candid:\n%s\nwith candid:\n%s", plain, profiled)
	}
}

func TestLaunchJavaArguments(t *testing.T) {
	t.Parallel()
	launcher, classes := java(t)
	show := []string{launcher, "-cp", classes, "Arguments", "a b", "", "--", "-p"}
	plain, err := exec.Command(show[0], show[1:]...).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	c := launched(t, show...)
	with := finish(t, c)
	flags := "-XX:+UnlockDiagnosticVMOptions\n-XX:+DebugNonSafepoints\n"
	if got := strings.Replace(with.out, flags, "", 1); got != string(plain) || got == with.out || with.err != "" {
		t.Errorf("plain:\n%s\nwith candid:\n%s%s", plain, with.out, with.err)
	}
	args := append([]string{"record", "-q", "-o", os.DevNull, "--format", "collapsed", "--no-jvm-flags", "--"}, show...)
	if r := ok(t, args...); r.out != string(plain) || r.err != "" {
		t.Errorf("plain:\n%s\nwith --no-jvm-flags:\n%s%s", plain, r.out, r.err)
	}
}

// A program's output does not change, however often it is sampled.
func TestOutputIsTheSame(t *testing.T) {
	launcher, classes := java(t)
	show := []string{launcher, "-cp", classes, "Output"}
	plain, err := exec.Command(show[0], show[1:]...).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	r := ok(t, append([]string{"record", "-F", "5000", "-o", "x.collapsed", "--"}, show...)...)
	if r.out != string(plain) || !strings.HasSuffix(r.out, "end\n") {
		t.Errorf("plain:\n%s\nat 5 kHz:\n%s", plain, r.out)
	}
	for l := range strings.Lines(r.err) {
		if strings.Contains(l, "JAVA_TOOL_OPTIONS") || strings.Contains(l, "Picked up") || strings.Contains(l, "warning:") {
			t.Errorf("the JVM says: %s", l)
		}
	}
}

// Nothing of candid itself is in the profile of a program that it launched, and programs that
// execute others are followed.
func TestLaunchFollowsExec(t *testing.T) {
	var r result
	for _, seconds := range []string{"1.5", "6", "24"} { // on a busy machine it gets little CPU time in one second
		script := "exec " + strings.Join(chain(t, seconds), " ")
		script = strings.ReplaceAll(script, "f*", "'f*'")
		r = ok(t, "record", "-q", "-F", "500", "-o", "-", "--format", "collapsed", "--", "sh", "-c", "exec sh -c \"$0\"", script)
		if samples(r.out, "Chain.main;Chain.run;Chain.f1") >= 50 {
			break
		}
	}
	if strings.Contains(r.out, "candid/") || strings.Contains(r.out, "main.main") || strings.Contains(r.out, "runtime.") {
		t.Errorf("candid itself is in the profile:\n%s", r.out)
	}
	if n := samples(r.out, "Chain.main;Chain.run;Chain.f1"); n < 50 {
		t.Errorf("%d samples of the Java program:\n%s", n, r.out)
	}
}

func TestLaunchChildren(t *testing.T) {
	able(t)
	spin := "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"
	script := "sh -c '" + spin + "' & sh -c '" + spin + "'; wait; true"
	args := []string{"record", "-q", "-F", "500", "-o", "-", "--format", "collapsed", "-t"}
	alone := ok(t, append(args, "--", "sh", "-c", script)...)
	both := ok(t, append(args, "--children", "--", "sh", "-c", script)...)
	if a, b := samples(alone.out, ""), samples(both.out, ""); b < 30 || a > b/3 {
		t.Errorf("%d samples without the children, %d with them", a, b)
	}
	threads := map[string]bool{}
	for _, s := range stacks(both.out) {
		threads[s.frames[0]] = true
	}
	if len(threads) < 2 {
		t.Errorf("threads: %v", threads)
	}
}

// The profile is available as soon as the recording ends; the program goes on, and candid waits for
// its end.
func TestLaunchGoesOn(t *testing.T) {
	t.Parallel()
	able(t)
	self, _ := os.Executable()
	c := command(t, "record", "-d", "2s", "-o", "x.collapsed", "--", self)
	c.Env = append(os.Environ(), actAs+"=tick")
	var errs bytes.Buffer
	c.Stderr = &errs
	r := start(t, c)
	file := filepath.Join(c.Dir, "x.collapsed")
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			break
		}
		if time.Since(begin) > patience {
			t.Fatal("no profile while the program runs")
		}
	}
	time.Sleep(500 * time.Millisecond)
	for len(r.lines) > 0 {
		<-r.lines
	}
	r.wait(t, "tick")
	// A signal to candid now goes to the program.
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := r.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("ended with %v\n%s", err, errs.String())
	}
	if !strings.Contains(errs.String(), "waiting for it to end") {
		t.Errorf("it does not say what it waits for:\n%s", errs.String())
	}
}

// A signal during the recording saves the profile and is passed to the program.
func TestLaunchPassesSignals(t *testing.T) {
	able(t)
	c := command(t, "record", "-o", "x.collapsed", "--", "sh", "-c",
		`trap 'echo usr1' USR1; trap 'echo term; exit 9' TERM; echo ready; while :; do :; done`)
	var errs bytes.Buffer
	c.Stderr = &errs
	r := start(t, c)
	r.wait(t, "ready")
	r.Process.Signal(syscall.SIGUSR1)
	r.wait(t, "usr1")
	pid, err := strconv.Atoi(children(t, r.pid()))
	if err != nil {
		t.Fatal(err)
	}
	works(t, pid, 200*time.Millisecond)
	r.Process.Signal(syscall.SIGTERM)
	r.wait(t, "term")
	if err := r.Wait(); err == nil || r.ProcessState.ExitCode() != 9 {
		t.Errorf("ended with %v\n%s", err, errs.String())
	}
	if b, err := os.ReadFile(filepath.Join(c.Dir, "x.collapsed")); err != nil || samples(string(b), "") == 0 {
		t.Errorf("nothing was saved: %q, %v\n%s", b, err, errs.String())
	}
}
