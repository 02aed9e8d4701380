package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program that top launches does not write over the table, and ends with top.
func TestTopLaunches(t *testing.T) {
	t.Parallel()
	kept := filepath.Join(t.TempDir(), "out")
	script := `trap 'echo asked to end; exit 3' TERM; echo on the screen; tty; cat; echo $$ > pid; while :; do :; done`
	d := draw(t, 100, 30, nil, "--output", kept, "--", "sh", "-c", script)
	await(t, "all that it prints", func() bool { b, _ := os.ReadFile(filepath.Join(d.Dir, "pid")); return bytes.HasSuffix(b, []byte("\n")) })
	text := d.sees(`(?m)^ +\d+\.\d% .*`)
	if !strings.Contains(text, "candid top  sh -c") || strings.Contains(text, "on the screen\n") {
		t.Errorf("the screen is\n%s", text)
	}
	pid, err := os.ReadFile(filepath.Join(d.Dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	d.press("q")
	d.ends(exitOK)
	b, err := os.ReadFile(kept)
	if want := "on the screen\nnot a tty\nasked to end\n"; err != nil || string(b) != want {
		t.Errorf("it printed %q, not %q: %v", b, want, err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
		t.Error("the program runs on")
	}
}

// The table of a program that has ended stays until q is pressed; its exit code is candid's.
func TestTopLaunchedEnds(t *testing.T) {
	d := draw(t, 100, 30, nil, "--", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 7")
	d.sees(`TARGET ENDED`)
	d.press("\x03")
	d.ends(7)
}

func TestTopOnceLaunches(t *testing.T) {
	t.Parallel()
	able(t)
	r := forEnough(t, sampled, "top", "--once", "--json", "--", "sh", "-c", "echo text; while :; do :; done")
	if r.code != exitOK || !strings.HasPrefix(r.out, "{") || !strings.Contains(r.err, "discarded; --output FILE keeps it") {
		t.Errorf("exit code %d\n%s\n%s", r.code, r.out, r.err)
	}
	r = candid(t, "top", "--once", "-d", "20s", "--", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 9")
	if r.code != 9 || !strings.Contains(r.out, "sh") {
		t.Errorf("exit code %d\n%s\n%s", r.code, r.out, r.err)
	}
	// A program that ignores the request to end is killed by a second signal. It must be running,
	// and its shell must have set the trap, before it is asked.
	c := command(t, "top", "--once", "-d", "3s", "--", "sh", "-c", "trap '' TERM INT; while :; do :; done")
	var errs syncBuffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "candid to wait for the program", func() bool { return strings.Contains(errs.String(), waitingFor) })
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, errs.String())
	}
	for _, c := range []struct {
		args  []string
		code  int
		words []string
	}{
		{[]string{"top", "--once", "--", "no-such-command-here"}, exitNotFound, []string{"no-such-command-here"}},
		{[]string{"top", "--once", "--output", "x", "-p", "1"}, exitUsage, []string{"--output", "COMMAND"}},
		{[]string{"top", "--once", "-a", "--", "sleep", "1"}, exitUsage, []string{"-a -d 1s"}},
		{[]string{"top", "--once", "--output", "/no/such/x", "--", "true"}, exitCandidFailed, []string{"/no/such/x", "--output"}},
	} {
		r := candid(t, c.args...)
		r.err = strings.TrimPrefix(r.err, "candid: what the program prints is discarded; --output FILE keeps it\n")
		r.refused(t, c.code, c.words...)
	}
}
