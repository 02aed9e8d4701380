package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// Impossible requests are refused with one clear line and the right exit code, before anything is
// recorded.
func TestRefusals(t *testing.T) {
	able(t)
	target := program(t, "idle").pid()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	zombie := exec.Command("true")
	if err := fixture.Spawn(zombie); err != nil {
		t.Fatal(err)
	}
	defer zombie.Wait()
	await(t, "the end of a child", func() bool { return strings.HasPrefix(stat(t, zombie.Process.Pid), "Z ") })

	dir := t.TempDir()
	there := filepath.Join(dir, "there.html")
	if err := os.WriteFile(there, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := []string{"record", "-p", target}
	for _, c := range []struct {
		name  string
		args  []string
		code  int
		words []string
	}{
		{"no such process", []string{"record", "-p", "4194305"}, exitNoTarget, []string{"4194305", "no such process"}},
		{"ended process", []string{"record", "-p", itoa(dead.Process.Pid)}, exitNoTarget, []string{"no such process"}},
		{"a number beyond any process", []string{"record", "-p", "4294967297"}, exitNoTarget, []string{"no such process"}}, // its lower half is a process
		{"zombie", []string{"record", "-p", itoa(zombie.Process.Pid)}, exitNoTarget, []string{"zombie"}},
		{"one of two", append(p, "-p", "4194305"), exitNoTarget, []string{"4194305"}},
		{"no number", []string{"record", "-p", "java"}, exitUsage, []string{`"java"`, "candid ps java"}},
		{"pid 0", []string{"record", "-p", "0"}, exitUsage, []string{`"0"`}},
		{"unknown event", append(p, "-e", "cache-nonsense"), exitUsage, []string{"cache-nonsense", "cpu"}},
		{"frequency 0", append(p, "-F", "0"), exitUsage, []string{"0 Hz"}},
		{"frequency -1", append(p, "-F", "-1"), exitUsage, []string{"-1 Hz"}},
		{"frequency 1e9", append(p, "-F", "1e9"), exitUsage, []string{"20000"}},
		{"frequency nan", append(p, "-F", "nan"), exitUsage, []string{"NaN"}},
		{"frequency text", append(p, "-F", "fast"), exitUsage, []string{"fast", "no number", "--help"}},
		{"interval without a unit", append(p, "-i", "10"), exitUsage, []string{`"10"`, "10ms", "--help"}},
		{"interval 0", append(p, "-i", "0s"), exitUsage, []string{"interval"}},
		{"interval 1ns", append(p, "-i", "1ns"), exitUsage, []string{"out of range"}},
		{"both rates", append(p, "-F", "99", "-i", "10ms"), exitUsage, []string{"-F", "-i"}},
		{"duration 0", append(p, "-d", "0s"), exitUsage, []string{"duration"}},
		{"duration in words", append(p, "-d", "soon"), exitUsage, []string{`"soon"`, "30s"}},
		{"unknown engine", append(p, "--engine", "magic"), exitUsage, []string{"magic", "bpf", "perf"}},
		{"bad thread filter", append(p, "--thread", "("), exitUsage, []string{"--thread"}},
		{"nothing to record", []string{"record"}, exitUsage, []string{"-p", "-a", "COMMAND"}},
		{"two ways", append(p, "-a"), exitUsage, []string{"-p", "-a"}},
		{"process and command", append(p, "--", "true"), exitUsage, []string{"-p", "COMMAND"}},
		{"stray argument", append(p, "now"), exitUsage, []string{`"now"`}},
		{"a number is a process", []string{"record", "4194305"}, exitNoTarget, []string{"4194305", "no such process"}},
		{"a number is a process, then flags", []string{"record", "4194305", "-d", "1", "--nope"}, exitUsage, []string{"--nope"}},
		{"a process of top", []string{"top", "4194305", "--once"}, exitNoTarget, []string{"no such process"}},
		{"a process of dump", []string{"dump", "4194305"}, exitNoTarget, []string{"no such process"}},
		{"a process of doctor", []string{"doctor", "4194305"}, exitNoTarget, []string{"no such process"}},
		{"two of doctor", []string{"doctor", "1", "2"}, exitUsage, []string{"one process"}},
		{"a name for dump", []string{"dump", "java"}, exitUsage, []string{"candid ps java"}},
		{"a name to record", []string{"record", "no-such-program-here"}, exitNotFound, []string{"command not found", "candid ps no-such-program-here"}},
		{"perf's way to record a machine", []string{"record", "-a", "--", "sleep", "3"}, exitUsage, []string{"-a -d 3s"}},
		{"perf's way to record a process", append(p, "sleep", "3"), exitUsage, []string{"-p " + target + " -d 3s"}},
		{"perf's way without events", append(p, "-g", "--call-graph", "dwarf", "-e", "cache-nonsense"), exitUsage, []string{"cache-nonsense"}},
		{"a file after -f", append(p, "-f", "x.html"), exitUsage, []string{"-f:", "-o FILE"}},
		{"a format of others", append(p, "--format", "flamegraph"), exitUsage, []string{"html"}},
		{"a picture", append(p, "-o", "x.svg"), exitUsage, []string{"-o x.html"}},
		{"a rate after --rate", append(p, "--rate", "99"), exitUsage, []string{"--rate:", "-F"}},
		{"a rate after -r", append(p, "-r", "99"), exitUsage, []string{"-r:", "-F"}},
		{"locks", append(p, "--lock"), exitUsage, []string{"--lock:", "-e wall", "candid dump"}},
		{"the event of locks", append(p, "-e", "lock"), exitUsage, []string{"-e wall", "candid dump"}},
		{"wall as a flag", append(p, "--wall"), exitUsage, []string{"--wall:", "-e wall"}},
		{"a flag with one dash", append(p, "-from", "3s"), exitUsage, []string{"-from:", "--from"}},
		{"the beginning of a flag", append(p, "--dur", "3"), exitUsage, []string{"--duration"}},
		{"another's flame graph", []string{"flamegraph", "x.jfr"}, exitUsage, []string{"convert", "view"}},
		{"another's stacks", []string{"jstack", "1"}, exitUsage, []string{"candid dump"}},
		{"another's list", []string{"list"}, exitUsage, []string{"candid ps"}},
		{"two files to convert", []string{"convert", "a.jfr", "out.html"}, exitUsage, []string{"-o out.html"}},
		{"a port that is none", []string{"view", "x.jfr", "--port", "80x"}, exitUsage, []string{`--port "80x": that is no number`}},
		{"unknown flag", append(p, "--nope"), exitUsage, []string{"--nope", "--help"}},
		{"unknown command", []string{"frobnicate"}, exitUsage, []string{"frobnicate", "--help"}},
		{"no such directory", append(p, "-o", filepath.Join(dir, "no", "x.html")), exitFailed, []string{"no such file or directory", "-o"}},
		{"output exists", append(p, "-o", there), exitFailed, []string{there, "--force"}},
		{"output is a directory", append(p, "-o", dir), exitFailed, []string{"directory"}},
		{"unknown extension", append(p, "-o", "x.bogus"), exitUsage, []string{"x.bogus", ".html", "--format"}},
		{"unknown format", append(p, "--format", "bogus"), exitUsage, []string{"bogus", "pprof"}},
		{"standard output without a format", append(p, "-o", "-"), exitUsage, []string{"--format"}},
		{"report without a file", []string{"report"}, exitUsage, []string{"one file"}},
		{"report of two", []string{"report", there, there}, exitUsage, []string{"one file"}},
		{"report of nothing", []string{"report", filepath.Join(dir, "none.pb.gz")}, exitFailed, []string{"none.pb.gz", "no such file"}},
		{"report of a directory", []string{"report", dir}, exitFailed, []string{"directory"}},
		{"report with a bad view", []string{"report", there, "--view", "nice"}, exitUsage, []string{"nice", "tree"}},
		{"report with a bad filter", []string{"report", there, "--focus", "*"}, exitUsage, []string{"--focus"}},
		{"report with bad callers", []string{"report", there, "--callers", "["}, exitUsage, []string{"--callers"}},
		{"report with a bad minimum", []string{"report", there, "--min", "101"}, exitUsage, []string{"--min"}},
		{"report of an empty stretch", []string{"report", there, "--from", "2s", "--to", "1s"}, exitUsage, []string{"--from"}},
		{"convert without an output", []string{"convert", there}, exitUsage, []string{"-o"}},
		{"ps with a bad expression", []string{"ps", "("}, exitUsage, []string{"("}},
		{"ps of nothing", []string{"ps", "no such command at all, anywhere$"}, exitNoTarget, []string{"no process matches"}},
		{"ps of two", []string{"ps", "a", "b"}, exitUsage, []string{"one REGEX"}},
		{"version of what", []string{"version", "x"}, exitUsage, []string{`"x"`, "--help"}},
		{"nearly a command", []string{"reprot", "-o", "x"}, exitUsage, []string{"reprot", "did you mean report?"}},
		{"help of nothing", []string{"help", "frobnicate"}, exitUsage, []string{"frobnicate", "--help"}},
		{"completion of no shell", []string{"completion", "tcsh"}, exitUsage, []string{"tcsh", "bash"}},
		{"a directory as a command", []string{"record", "--", dir}, exitNotExecutable, []string{dir, "it is a directory"}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			cmd := command(t, c.args...)
			finish(t, cmd).refused(t, c.code, c.words...)
			if left, _ := os.ReadDir(cmd.Dir); len(left) > 0 {
				t.Errorf("it left %v behind", left)
			}
		})
	}
	if b, err := os.ReadFile(there); err != nil || string(b) != "mine" {
		t.Errorf("the file that was there is now %q, %v", b, err)
	}
}

func TestKernelThread(t *testing.T) {
	able(t)
	stat, err := os.ReadFile("/proc/2/comm")
	if err != nil || string(stat) != "kthreadd\n" {
		t.Skip("process 2 is no kernel thread here (a container)")
	}
	candid(t, "record", "-p", "2").refused(t, exitNoTarget, "kernel thread")
}

// An ordinary user is told what is missing.
func TestNotPermitted(t *testing.T) {
	able(t)
	root(t)
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	target := program(t, "spin").pid()
	for _, args := range [][]string{{"record", "-p", target}, {"record", "-a"}} {
		c := command(t, args...)
		c.Dir = public(t, 0o777)
		c.Args = append(c.Args, "-d", "100ms", "-o", os.DevNull, "--format", "collapsed")
		c.SysProcAttr = nobody
		finish(t, c).refused(t, exitPermission, "CAP_")
	}
	c := command(t, "record", "-p", target, "-o", "x.html") // in root's directory
	c.Dir = public(t, 0o755)
	c.SysProcAttr = nobody
	finish(t, c).refused(t, exitPermission, "cannot write x.html", "permission denied")
}

// An ordinary user profiles their own programs, with less detail if the system permits less, or is
// told what to change.
func TestOrdinaryUser(t *testing.T) {
	able(t)
	root(t)
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	own := exec.Command("sh", "-c", "echo ready; while :; do :; done")
	own.SysProcAttr = nobody
	target := start(t, own)
	target.wait(t, "ready")
	var c *exec.Cmd
	var r result
	for _, long := range forLong {
		c = command(t, "record", "-F", "500", "-d", long, "-p", target.pid(), "-o", "x.collapsed")
		c.Dir = public(t, 0o777)
		c.SysProcAttr = nobody
		r = finish(t, c)
		if b, _ := os.ReadFile(filepath.Join(c.Dir, "x.collapsed")); r.code == exitPermission || samples(string(b), "") >= 10 {
			break
		}
	}
	switch r.code {
	case exitOK:
		b, err := os.ReadFile(filepath.Join(c.Dir, "x.collapsed"))
		if err != nil || samples(string(b), "") < 10 {
			t.Errorf("%v\n%s\n%s", err, b, r.err)
		}
		// The best engine needs more privileges than an ordinary user has.
		if !strings.Contains(r.err, "BPF is not permitted") {
			t.Errorf("it does not say why it uses what it uses:\n%s", r.err)
		}
	case exitPermission:
		r.refused(t, exitPermission, "perf_event_paranoid")
	default:
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	// The same holds for a target that candid launches.
	c = command(t, "record", "-q", "-F", "500", "-o", "y.collapsed", "--", "sh", "-c", "exit 6")
	c.Dir, c.SysProcAttr = public(t, 0o777), nobody
	if r := finish(t, c); r.code != 6 && r.code != exitCandidFailed {
		t.Errorf("launching: exit code %d\n%s", r.code, r.err)
	}
}

// public creates a directory that other users can enter, which t.TempDir is not.
func public(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp(shared, "public-*")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Broken files are refused, in whichever way they are broken.
func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	able(t)
	dir := t.TempDir()
	good := filepath.Join(dir, "good.pb.gz")
	forEnough(t, sampled, "record", "-q", "-p", program(t, "spin").pid(), "-o", good)
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"half.pb.gz": b[:len(b)/2], "start.pb.gz": b[:12], "empty.pb.gz": nil, "text.pb.gz": []byte("hello\n"),
		"zeros.pb": make([]byte, 100), "junk.jfr": {0x8f, 0x03, 0xfe, 0xff, 0x00, 0x17}, "bare.pb": {0x0a, 0xff, 0xff, 0xff, 0x0f}, "text.collapsed": []byte("no count here\n"),
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			r := candid(t, "report", file)
			r.refused(t, exitFailed, name)
			if known := strings.Contains(r.err, "candid reads"); !known && (strings.HasPrefix(name, "junk") || strings.HasPrefix(name, "text")) {
				t.Errorf("it does not say what is read: %s", r.err)
			}
			c := command(t, "convert", file, "-o", "x.html")
			finish(t, c).refused(t, exitFailed, name)
			if left, _ := os.ReadDir(c.Dir); len(left) > 0 {
				t.Errorf("it left %v behind", left)
			}
		})
	}
}

// A target that uses no CPU time yields no samples, and candid says so.
func TestNoSamples(t *testing.T) {
	t.Parallel()
	able(t)
	idle := program(t, "idle")
	rests(t, idle.Process.Pid)
	r := candid(t, "record", "-q", "-p", idle.pid(), "-d", "200ms", "-o", "x.html")
	r.refused(t, exitNoSamples, "no samples", "CPU", "--children")
	r = forEnough(t, ran, "record", "-q", "-p", program(t, "spin").pid(), "-o", "x.html", "--thread", "nobody.*")
	r.refused(t, exitNoSamples, "nobody")
	// It used CPU time: that is not the reason.
	r = candid(t, "record", "-q", "-p", program(t, "spin").pid(), "-d", "200ms", "-o", "x.html", "-e", "alignment-faults")
	r.refused(t, exitNoSamples, "alignment-faults happened too seldom", "or not at all", "alignment-faults/period=1/")
	r = candid(t, "record", "-q", "-p", program(t, "spin").pid(), "-d", "200ms", "-o", "x.html", "-e", "alignment-faults/period=1/")
	r.refused(t, exitNoSamples, "did not happen")
	r = candid(t, "record", "-q", "-p", program(t, "spin").pid(), "-d", "200ms", "-o", "x.html", "-e", "alignment-faults/period=1000/u")
	r.refused(t, exitNoSamples, "too seldom", "one in 1000", "-e alignment-faults:u/period=1/")
}
