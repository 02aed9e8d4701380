package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// A program that candid launches on a terminal has it as without candid: it reads what is typed, is
// notified of a new size once, and gets each Ctrl-C once. The first one ends the recording, which
// is saved, and the program goes on.
func TestLaunchOnTerminal(t *testing.T) {
	able(t)
	for _, engine := range []string{"auto", "suspend"} {
		t.Run(engine, func(t *testing.T) {
			c := command(t, "record", "-F", "500", "--engine", engine, "-o", "x.collapsed", "--", "sh", "-c", `
n=0
trap 'echo "size $(stty size)"' WINCH
trap 'n=$((n+1)); echo "interrupt $n"; [ $n -lt 2 ] || exit 7' INT
echo "size $(stty size)"
read word; echo "typed $word"
i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo worked
while :; do :; done`)
			tooLittle := fixture.Watch(t)
			d := drawOf(t, c, 80, 24, nil)
			d.sees(`size 24 80`)
			d.press("hello\n")
			d.sees(`typed hello`)
			size(t, d.keys, 100, 30)
			d.sees(`size 30 100`)
			d.sees(`worked`) // after some tenths of a second of CPU time, however long that took
			d.press("\x03")
			text := d.sees(`interrupt 1`)
			if n := strings.Count(text, "size 30 100"); n != 1 {
				t.Errorf("it learnt %d times of the new size", n)
			}
			file := filepath.Join(c.Dir, "x.collapsed")
			await(t, "the profile", func() bool { _, err := os.Stat(file); return err == nil })
			await(t, "what it waits for", func() bool { return strings.Contains(d.errs.String(), "waiting for it to end") })
			d.press("\x03")
			text = d.sees(`interrupt 2`)
			<-d.done
			if code := d.ProcessState.ExitCode(); code != 7 {
				t.Errorf("exit code %d, want the program's 7\n%s\n%s", code, text, d.errs.String())
			}
			if strings.Contains(text, "interrupt 3") {
				t.Errorf("a key came twice:\n%s", text)
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			} else if n := samples(string(b), ""); n < 10 {
				tooLittle("only %d samples of some tenths of a second of work were saved: %q", n, b)
			}
		})
	}
}

// A program that candid launches may draw on the terminal: candid has no line there that it
// redraws. (It may print once how busy the machine is.)
func TestLaunchedDraws(t *testing.T) {
	t.Parallel()
	able(t)
	c := command(t, "record", "-o", "x.collapsed", "--", "sh", "-c", `printf 'from here'; timeout 2 sh -c 'while :; do :; done'; echo ' to there'`)
	c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `exec "$0" "$@"`, binary}, c.Args[1:]...)
	d := drawOf(t, c, 80, 24, nil)
	if text := d.sees(`to there\n`); !strings.Contains(text, "\nfrom here") || strings.Contains(text, "Ctrl-C stops and saves") {
		t.Errorf("something is written over what the program writes:\n%s", text)
	}
	<-d.done
}

// Without a program that candid launched, Ctrl-C saves, and the shell goes on.
func TestInterruptOnTerminal(t *testing.T) {
	able(t)
	target := program(t, "tick")
	c := command(t, "record", "-F", "500", "-o", "x.collapsed", "-p", target.pid())
	d := drawOf(t, c, 80, 24, nil)
	await(t, "sampling", func() bool { return strings.Contains(d.errs.String(), "perf events") })
	works(t, target.Process.Pid, 200*time.Millisecond)
	d.press("\x03")
	<-d.done
	b, err := os.ReadFile(filepath.Join(c.Dir, "x.collapsed"))
	if code := d.ProcessState.ExitCode(); code != exitOK || err != nil || samples(string(b), "") < 10 {
		t.Errorf("exit code %d, saved %q, %v\n%s", code, b, err, d.errs.String())
	}
	unharmed(t, target)
}
