package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A user who records a program that only starts others is told how to see those.
func TestLauncherHasNoSamples(t *testing.T) {
	able(t)
	target := start(t, exec.Command("sh", "-c", "echo ready; cat; true"))
	target.wait(t, "ready")
	rests(t, target.Process.Pid)
	r := candid(t, "record", "-q", "-p", target.pid(), "-d", "200ms", "-o", "x.html")
	r.refused(t, exitNoSamples, "has started other processes", "--children")
	r = candid(t, "top", "--once", "-p", target.pid(), "-d", "200ms", "-i", "10ms")
	if r.code != exitNoSamples || !strings.Contains(r.err, "--children") {
		t.Errorf("top: exit code %d\n%s", r.code, r.err)
	}
	r = candid(t, "record", "-q", "-p", target.pid(), "-d", "200ms", "-o", "x.html", "--children")
	if r.code != exitNoSamples || strings.Contains(r.err, "--children") {
		t.Errorf("with --children: exit code %d\n%s", r.code, r.err)
	}
}

// A filter that matches nothing is reported, also by the exit code, even if JSON is printed.
func TestNothingMatches(t *testing.T) {
	t.Parallel()
	able(t)
	p := program(t, "spin")
	r := candid(t, "dump", "-p", p.pid(), "--thread", "nosuch")
	if r.code != exitNoSamples || !strings.Contains(r.err, "--thread nosuch") || strings.Count(r.err, "\n") != 1 {
		t.Errorf("dump: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	r = candid(t, "dump", "-p", p.pid(), "--thread", "nosuch", "--json")
	if r.code != exitNoSamples || !json.Valid([]byte(r.out)) || !strings.Contains(r.err, "--thread nosuch") {
		t.Errorf("dump --json: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	candid(t, "ps", "no-such-program-[0-9]x").refused(t, exitNoTarget, "no process matches")
	r = candid(t, "ps", "no-such-program-[0-9]x", "--json")
	if r.code != exitNoTarget || strings.TrimSpace(r.out) != "[]" || !strings.Contains(r.err, "no process matches") {
		t.Errorf("ps --json: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// A user who may not look at a program is told that there is more to see.
func TestPSOfOthers(t *testing.T) {
	able(t)
	root(t)
	program(t, "idle") // belongs to root
	c := command(t, "ps")
	c.Dir = public(t, 0o755)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if r := finish(t, c); r.code != exitOK || !strings.Contains(r.err, "not looked at: 'sudo candid ps'") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// A program that ends at once is reported to have ended, with its exit code: that is why there is
// nothing to see.
func TestEndsAtOnce(t *testing.T) {
	able(t)
	r := candid(t, "record", "-F", "1", "sh", "-c", "exit 3")
	if r.code != 3 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	if strings.Contains(r.err, "samples  ") && !strings.Contains(r.err, "samples  0") {
		return // on a very busy machine one sample may be in it
	}
	if !strings.Contains(r.err, "the program ended with exit code 3") || strings.Contains(r.err, "No samples.") || strings.Contains(r.err, "hint") {
		t.Errorf("%s", r.err)
	}
	if !strings.Contains(r.err, "after ") {
		t.Errorf("it does not say when:\n%s", r.err)
	}
}

// In top as in record, a rate may be written as a time.
func TestTopInterval(t *testing.T) {
	able(t)
	p := program(t, "spin").pid()
	r := candid(t, "top", "--once", "-p", p, "-d", "300ms", "-i", "1ms")
	if !strings.Contains(r.err, "Hz") || strings.Contains(r.err, "99 Hz per") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	candid(t, "top", "--once", "-p", p, "-i", "1ms", "-F", "99").refused(t, exitUsage, "-F or -i")
	candid(t, "top", "--once", "-p", p, "-i", "0s").refused(t, exitUsage, "interval")
}
