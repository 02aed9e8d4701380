package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/hostinfo"
	"github.com/candid-profiler/candid/internal/live"
)

// drawn is candid top on a terminal of its own.
type drawn struct {
	*exec.Cmd
	t      testing.TB
	keys   *os.File // the other end of the terminal
	tty    *os.File
	screen *vt
	before unix.Termios
	errs   syncBuffer
	done   chan error
	read   chan struct{} // is closed when all that the terminal holds has been read
}

// terminal opens a pseudo-terminal.
func terminal(t testing.TB, w, h int) (outside, inside *os.File) {
	t.Helper()
	outside, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(outside.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(outside.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	inside, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inside.Close(); outside.Close() })
	size(t, outside, w, h)
	return outside, inside
}

func size(t testing.TB, f *os.File, w, h int) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(h), Col: uint16(w)}); err != nil {
		t.Fatal(err)
	}
}

// draw starts candid top on a terminal; environ is added to the environment.
func draw(t testing.TB, w, h int, environ []string, args ...string) *drawn {
	t.Helper()
	able(t)
	return drawOf(t, command(t, append([]string{"top"}, args...)...), w, h, environ)
}

// drawOf starts a command on a terminal.
func drawOf(t testing.TB, c *exec.Cmd, w, h int, environ []string) *drawn {
	t.Helper()
	d := &drawn{Cmd: c, t: t, screen: newVT(w, h), done: make(chan error, 1), read: make(chan struct{})}
	d.keys, d.tty = terminal(t, w, h)
	termios, err := unix.IoctlGetTermios(int(d.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	d.before = *termios
	d.Env = append(append(os.Environ(), "TERM=xterm-256color", "NO_COLOR="), environ...)
	d.Stdin, d.Stdout, d.Stderr = d.tty, d.tty, &d.errs
	if c.Path != binary { // a shell prompts there
		d.Stderr = d.tty
	}
	d.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	go func() {
		defer close(d.read)
		_, _ = io.Copy(d.screen, d.keys)
	}()
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { d.done <- d.Wait() }()
	t.Cleanup(func() { d.Process.Kill() })
	return d
}

func (d *drawn) press(keys string) {
	d.t.Helper()
	if _, err := d.keys.WriteString(keys); err != nil {
		d.t.Fatal(err)
	}
}

// settles is how long nothing must be drawn after a complete picture, which may arrive in several
// pieces.
const settles = 60 * time.Millisecond

// sees waits until the screen matches an expression, and returns the screen: a complete picture,
// unless one follows the other for a second.
func (d *drawn) sees(expression string) string {
	d.t.Helper()
	re := regexp.MustCompile(expression)
	matched, written, since := time.Time{}, -1, time.Time{}
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		n := d.screen.writes()
		text := d.screen.text()
		now := time.Now()
		if n != written {
			written, since = n, now
		}
		if re.MatchString(text) {
			if matched.IsZero() {
				matched = now
			}
			if now.Sub(since) >= settles || now.Sub(matched) > time.Second {
				return text
			}
			continue
		}
		matched = time.Time{}
		if time.Since(begin) > patience/3 {
			d.t.Fatalf("%s is not seen in\n%s\n%s", expression, text, d.errs.String())
		}
	}
}

// ends waits for the program's end; the terminal must be as it was before.
func (d *drawn) ends(code int) {
	d.t.Helper()
	select {
	case <-d.done:
	case <-time.After(patience / 3):
		d.t.Fatalf("it does not end:\n%s", d.screen.text())
	}
	if got := d.ProcessState.ExitCode(); got != code {
		d.t.Errorf("exit code %d, want %d (%v)\n%s\n%s", got, code, d.ProcessState, d.errs.String(), d.screen.text())
	}
	if after, err := unix.IoctlGetTermios(int(d.tty.Fd()), unix.TCGETS); err != nil || *after != d.before {
		d.t.Errorf("the terminal is set to %+v, was %+v, %v", after, d.before, err)
	}
	// The kernel may still hold the last output: a terminal that nobody has open any more is read to
	// its end.
	_ = d.tty.Close()
	select {
	case <-d.read:
	case <-time.After(patience / 3):
		d.t.Fatalf("the terminal's output does not end:\n%s", d.screen.text())
	}
	if left := d.screen.changed(); len(left) > 0 {
		d.t.Errorf("of the terminal's modes are left: %v", left)
	}
	if errs := strings.ReplaceAll(d.errs.String(), "candid: "+waitingFor+"\n", ""); code == exitOK && errs != "" {
		d.t.Errorf("it says %s", errs)
	}
}

// One session uses all keys, on a Java program.
func TestTop(t *testing.T) {
	launcher, classes := java(t)
	target := start(t, exec.Command(launcher, "-cp", classes, "Ticks"))
	target.wait(t, "tick")
	d := draw(t, 100, 30, nil, "-p", target.pid(), "-F", "300")
	text := d.sees(`(?m)^ +\d+\.\d% +\d+\.\d% +\d+\.\d%  \w+ +Ticks\.work$`)
	for _, words := range []string{"candid top  java -cp", "Ticks", "hotspot 17.", "pid " + target.pid(), " samples/s", " CPUs", "0 lost", "% complete", "candid ", "SELF/10s", "q quit"} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is missing in\n%s", words, text)
		}
	}
	if !slices.Contains(d.screen.modesOn(), "?1049") || slices.Contains(d.screen.modesOn(), "?25") {
		t.Errorf("modes %v: not a screen of its own without a cursor", d.screen.modesOn())
	}
	d.press("/^Ticks\\.\r")
	text = d.sees(`only /\^Ticks\\./`)
	if rows := regexp.MustCompile(`(?m)^ +\d.*%.*$`).FindAllString(text, -1); len(rows) == 0 || slices.ContainsFunc(rows, func(r string) bool { return !strings.Contains(r, "Ticks.") }) {
		t.Errorf("what is filtered out is there:\n%s", text)
	}
	d.press("\r") // its callers
	d.sees(`(?s)Ticks\.work.*[├└]─[ +](Ticks|java)`)
	d.press("c")
	d.press("\x1b") // no filter
	d.sees(`(?m)^0 broken · 0 lost · \d`)
	d.press(" ")
	frozen := d.sees(`FROZEN at \d:\d\d`)
	time.Sleep(1500 * time.Millisecond)
	if now := d.screen.text(); now != frozen {
		t.Errorf("what is frozen changes from\n%s\nto\n%s", frozen, now)
	}
	d.press(" ")
	d.press("\t")
	d.sees(`(?m)\d+\.\d% +\d+  (running|sleeping) +[▁▂▃▄▅▆▇█ ]+ +the worker +Ticks\.work`)
	d.sees(`\d+\.\d% +\d+  (running|sleeping) .*  main  `) // this thread hardly works
	d.press("n")
	d.sees(`↓THREAD`)
	for _, s := range [][2]int{{40, 10}, {160, 40}, {80, 24}} {
		d.screen.resize(s[0], s[1])
		size(t, d.keys, s[0], s[1])
		if s[0] == 40 { // a few rows; which ones depends on what else ran lately
			d.sees(`(?m)\d:\d\d\n(.*\n)*.*\d\.\d% +\d+ +\S`)
			continue
		}
		d.sees(`(?m)\d:\d\d\n(.*\n)*.*the worke`)
		if s[0] == 160 { // there is room for more
			d.sees(`PART/ALL(.*\n)*.*the worker +\d+\.\d%  Ticks\.work`)
		}
	}
	d.press("?")
	d.sees(`Any key goes back`)
	d.press("x")
	d.sees(`THREAD`)
	d.press("q")
	d.ends(exitOK)
	unharmed(t, target)
}

// However top ends, the terminal is restored.
func TestTopEnds(t *testing.T) {
	t.Parallel()
	target := program(t, "tick")
	for name, end := range map[string]func(*drawn){
		"q":        func(d *drawn) { d.press("q") },
		"Ctrl-C":   func(d *drawn) { d.press("\x03") },
		"SIGINT":   func(d *drawn) { d.Process.Signal(syscall.SIGINT) },
		"SIGTERM":  func(d *drawn) { d.Process.Signal(syscall.SIGTERM) },
		"SIGHUP":   func(d *drawn) { d.Process.Signal(syscall.SIGHUP) },
		"filter":   func(d *drawn) { d.press("/abc\x03") },
		"freezing": func(d *drawn) { d.press(" "); d.sees("FROZEN"); d.press("q") },
	} {
		t.Run(name, func(t *testing.T) {
			d := draw(t, 80, 24, nil, "-p", target.pid())
			d.sees(`candid\.spinUntil|main\.spinUntil`)
			end(d)
			d.ends(exitOK)
		})
	}
	unharmed(t, target)
}

// The last table stays when the target has ended, until q.
func TestTopTargetEnds(t *testing.T) {
	t.Parallel()
	target := program(t, "spin")
	d := draw(t, 80, 24, nil, "-p", target.pid())
	d.sees(`spinUntil`)
	target.in.Close()
	d.sees(`TARGET ENDED at \d:\d\d(.*\n)*.*spinUntil`)
	d.press("\t")
	d.sees(`TARGET ENDED at \d:\d\d(.*\n)*.*HOTTEST`)
	d.press("q")
	d.ends(exitOK)

	other := program(t, "spin")
	d = draw(t, 80, 24, []string{"NO_COLOR=1"}, "-p", other.pid(), "-d", "3s")
	d.sees(`DONE at \d:\d\d(.*\n)*.*spinUntil`)
	d.press("q")
	d.ends(exitOK)
}

// Ctrl-Z restores the terminal for the shell, and fg goes on drawing.
func TestTopSuspended(t *testing.T) {
	t.Parallel()
	able(t)
	target := program(t, "tick")
	shell := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	d := drawOf(t, shell, 80, 24, []string{"PS1=prompt>", "HISTFILE=", "LC_ALL=C"})
	d.sees(`prompt>`)
	line := func() unix.Termios {
		now, err := unix.IoctlGetTermios(int(d.tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return *now
	}
	before := line()
	d.press(binary + " top -p " + target.pid() + "\n")
	d.sees(`(?m)q quit`)
	if line() == before {
		t.Error("the terminal is as a shell wants it while a table is drawn")
	}
	d.press("\x1a")
	d.sees(`Stopped`)
	if now := line(); now != before {
		t.Errorf("the stopped program leaves the terminal set to %+v, was %+v", now, before)
	}
	d.press("fg\n")
	d.sees(`(?m)^candid top(.*\n)*.*spinUntil(.*\n)*q quit`)
	d.press("q")
	d.sees(`prompt>\n*$`)
	if now := line(); now != before {
		t.Errorf("the terminal is left set to %+v, was %+v", now, before)
	}
	d.press("exit\n")
	<-d.done
}

// If candid cannot sample, it prints one line before anything is drawn.
func TestTopRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  []string
		code  int
		words []string
	}{
		{[]string{"top"}, exitUsage, []string{"-p", "-a"}},
		{[]string{"top", "-p", "x"}, exitUsage, []string{`"x"`}},
		{[]string{"top", "-p", "1", "--json"}, exitUsage, []string{"--once"}},
		{[]string{"top", "-p", "1", "sleep", "1"}, exitUsage, []string{"-p 1 -d 1s"}},
		{[]string{"top", "-p", itoa(os.Getpid())}, exitUsage, []string{"terminal", "--once"}},
		{[]string{"top", "-p", itoa(os.Getpid()), "-F", "0"}, exitUsage, []string{"frequency"}},
		{[]string{"top", "-p", itoa(os.Getpid()), "-d", "0s"}, exitUsage, []string{"duration"}},
		{[]string{"top", "-p", itoa(os.Getpid()), "--once", "-e", "nonsense"}, exitUsage, []string{"nonsense"}},
		{[]string{"top", "-p", "99999999", "--once"}, exitNoTarget, []string{"99999999"}},
	} {
		candid(t, c.args...).refused(t, c.code, c.words...)
	}
	able(t)
	idle := exec.Command("sleep", "1000")
	if err := fixture.Spawn(idle); err != nil {
		t.Fatal(err)
	}
	defer func() { idle.Process.Kill(); idle.Wait() }()
	rests(t, idle.Process.Pid)
	program(t, "spin") // something runs even on an idle machine
	if out := ok(t, "top", "--once", "-a", "-d", "1s", "--rows", "3").out; !strings.HasPrefix(out, "the whole machine: ") {
		t.Errorf("of the whole machine:\n%s", out)
	}
	r := candid(t, "top", "--once", "-d", "300ms", "-p", itoa(idle.Process.Pid))
	if r.code != exitNoSamples || r.out != "" || !strings.Contains(r.err, "no samples") {
		t.Errorf("of an idle program: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	d := draw(t, 80, 24, nil, "-p", "99999999")
	d.ends(exitNoTarget)
	if got := d.errs.String(); !strings.HasPrefix(got, "candid: ") || strings.TrimSpace(d.screen.text()) != "" {
		t.Errorf("on a terminal: %q and\n%s", got, d.screen.text())
	}
	d = draw(t, 80, 24, []string{"TERM=dumb"}, "-p", itoa(os.Getpid()))
	d.ends(exitUsage)
	if got := d.errs.String(); !strings.Contains(got, "--once") {
		t.Errorf("on a dumb terminal: %q", got)
	}
}

// The table for scripts agrees with the program's own split of its time.
func TestTopOnce(t *testing.T) {
	t.Parallel()
	launcher, classes := java(t)
	target := start(t, exec.Command(launcher, "-cp", classes, "Truth", "4", "wait"))
	target.wait(t, "ready")
	tooLittle := fixture.Watch(t)
	c := command(t, "top", "--once", "--json", "-p", target.pid(), "-F", "1500", "-d", "60s")
	var out, errs syncBuffer
	c.Stdout, c.Stderr = &out, &errs
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	await(t, "sampling", func() bool { return strings.Contains(errs.String(), "perf events") })
	fmt.Fprintln(target.in)
	last := ""
	for l := range target.lines {
		last = l
	}
	var truth map[string]float64
	if err := json.Unmarshal([]byte(last), &truth); err != nil {
		t.Fatalf("%v: %q", err, last)
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var r live.Report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if r.Schema != "candid.top/1" || r.Event.Name != "cpu" || r.Lost != 0 || r.Quality.Samples != r.All.Samples || r.Quality.Broken*50 > r.All.Samples ||
		len(r.Processes) != 1 || itoa(r.Processes[0].PID) != target.pid() || !strings.HasPrefix(r.Processes[0].Runtime, "hotspot 17.") || r.OwnCPU <= 0 {
		t.Errorf("%.2000s", out.String())
	}
	method := func(name string) live.MethodReport {
		i := slices.IndexFunc(r.Methods, func(m live.MethodReport) bool { return m.Name == name })
		if i < 0 {
			t.Fatalf("%s is missing in %.3000s", name, out.String())
		}
		return r.Methods[i]
	}
	measured := method("Truth.measured")
	// A sample weighs what ran since the one before it: after time that the host took from the machine
	// more than one period, which counts in the program's own clock too.
	all, weight, sum := float64(measured.Total.Samples), float64(measured.Total.Weight), 0.0
	for _, ns := range truth {
		sum += ns
	}
	if all < 500 {
		t.Fatalf("%v samples", all)
	}
	// Code that is thrown away before candid gets a CPU has no names, and is said to have none.
	if q := r.Quality; q.Heuristic*50 > q.Samples {
		tooLittle("%d of %d samples are heuristic", q.Heuristic, q.Samples)
		return
	}
	for phase, ns := range truth {
		want, is := ns/sum, 0.0
		if i := slices.IndexFunc(r.Methods, func(m live.MethodReport) bool { return m.Name == "Truth$"+phase+".run" }); i >= 0 {
			is = float64(r.Methods[i].Total.Weight) / weight
		}
		if math.Abs(want-is) > 0.005+4*math.Sqrt(want*(1-want)/all) {
			t.Errorf("%s: %.1f %% of the time, %.1f %% of %v samples", phase, 100*want, 100*is, all)
		}
	}
	if i := slices.IndexFunc(r.Threads, func(th live.ThreadReport) bool { return th.Name == "main" }); i < 0 || r.Threads[i].Count.Samples < uint64(all) ||
		r.Threads[i].CPU == nil || r.Threads[i].Hottest == nil {
		t.Errorf("threads %+v", r.Threads)
	}
	if !slices.IsSortedFunc(r.Methods, func(a, b live.MethodReport) int { return int(b.Self.Weight) - int(a.Self.Weight) }) {
		t.Error("methods are not in order")
	}
	// The same for people.
	spin := program(t, "spin")
	text := forEnough(t, sampled, "top", "--once", "-p", spin.pid()).out
	if !regexp.MustCompile(`(?m)^ *~?\d+\.\d% +~?\d+\.\d%  native +.*spinUntil`).MatchString(text) || !strings.Contains(text, "HOTTEST METHOD") || strings.Contains(text, "\x1b") {
		t.Errorf("the table is\n%s", text)
	}
}

// Watching costs little.
func TestTopCost(t *testing.T) {
	t.Parallel()
	launcher, classes := java(t)
	target := start(t, exec.Command(launcher, "-cp", classes, "Ticks"))
	target.wait(t, "tick")
	d := draw(t, 80, 24, nil, "-p", target.pid())
	d.sees(`Ticks\.work`)
	time.Sleep(time.Second)
	before, from, written := used(t, d.Process.Pid), time.Now(), d.screen.writes()
	time.Sleep(6 * time.Second)
	share := (used(t, d.Process.Pid) - before).Seconds() / time.Since(from).Seconds()
	t.Logf("%.2f %% of a CPU, %d bytes a second to the terminal", 100*share, (d.screen.writes()-written)/6)
	if slow := slowness(); share > 0.03*slow {
		t.Errorf("%.2f %% of a CPU, on a machine that takes %.1f times the time", 100*share, slow)
	}
	d.press("q")
	d.ends(exitOK)
}

// slowness returns how many times more CPU time a loop takes now than where this was written, at
// least 1: what a CPU does in a second differs between machines, and on one machine with the load
// of its neighbours.
func slowness() float64 {
	const steps, here = 5000, 45e6 // of spinRed, ns
	best := math.Inf(1)
	for range 5 {
		before := hostinfo.OwnCPU()
		spinRed(steps)
		best = min(best, float64(hostinfo.OwnCPU()-before))
	}
	return max(1, best/here)
}

// stat returns /proc/PID/stat from after the name.
func stat(t testing.TB, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(b[strings.LastIndexByte(string(b), ')')+2:])
}
