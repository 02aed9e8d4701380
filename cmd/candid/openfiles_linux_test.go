package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Too few open files are told as that: not as a process that is hidden or gone, nor as a target that
// does nothing.
func TestTooFewFiles(t *testing.T) {
	t.Parallel()
	able(t)
	p := program(t, "spin").pid()
	limited := func(files string, args ...string) result {
		words := "ulimit -n " + files + "; exec \"$0\" \"$@\""
		c := exec.Command("sh", append([]string{"-c", words, binary}, args...)...)
		c.Dir = t.TempDir()
		return finish(t, c)
	}
	for _, args := range [][]string{
		{"record", "-p", p, "-d", "200ms", "-o", "x.jfr"}, {"record", "-p", p, "-d", "200ms", "--engine", "suspend", "-o", "x.jfr"},
		{"top", "--once", "-p", p}, {"dump", "-p", p}, {"ps"},
	} {
		for _, files := range []string{"8", "16", "63"} {
			r := limited(files, args...)
			r.refused(t, exitFailed, "open files", "may have "+files, "ulimit -n")
		}
	}
	limited("16", "record", "-o", "x.jfr", "--", "true").refused(t, exitCandidFailed, "may have 16")
	if r := limited("64", "record", "-q", "-p", p, "-d", "1s", "-F", "500", "--engine", "suspend", "-o", "-", "--format", "collapsed"); r.code != exitOK || samples(r.out, "") < 1 {
		t.Errorf("with 64: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// A target that a signal has stopped is told as stopped.
func TestStoppedTarget(t *testing.T) {
	t.Parallel()
	able(t)
	p := program(t, "spin")
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, "its stop", func() bool { return strings.HasPrefix(stat(t, p.Process.Pid), "T ") })
	for _, args := range [][]string{
		{"record", "-p", p.pid(), "-d", "200ms", "-o", "x.html"},
		{"record", "-p", p.pid(), "-d", "200ms", "--engine", "suspend", "-o", "x.html"},
		{"top", "--once", "-p", p.pid(), "-d", "200ms"},
	} {
		r := candid(t, args...)
		if r.code != exitNoSamples || !strings.Contains(r.err, "process "+p.pid()+" is stopped by a signal") || strings.Contains(r.err, "--children") {
			t.Errorf("%v: exit code %d\n%s", args, r.code, r.err)
		}
	}
	if s := stat(t, p.Process.Pid); !strings.HasPrefix(s, "T ") {
		t.Errorf("its state is %q afterwards", s)
	}
	r := candid(t, "dump", "-p", p.pid())
	if r.code != exitOK || !strings.Contains(r.out, "stopped") {
		t.Errorf("dump: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}
