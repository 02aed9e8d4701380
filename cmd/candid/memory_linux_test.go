package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/format"
)

// TestConvertInBoundedMemory converts a file that is ten times as long as another and
// says nothing that the other does not: it takes as much memory.
func TestConvertInBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a file of 200 MB")
	}
	dir := t.TempDir()
	// Both hold more samples than are kept one by one.
	short, long := filepath.Join(dir, "short.folded"), filepath.Join(dir, "long.folded")
	const lines, count = 1_600_000, 50
	writeFolded(t, short, lines, count)
	writeFolded(t, long, 10*lines, count)

	c := command(t, "convert", short, "-o", filepath.Join(dir, "short.jfr"))
	if r := finish(t, c); r.code != exitOK {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	few := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss // KiB; not less than it took
	out := filepath.Join(dir, "long.jfr")
	c = command(t, "convert", long, "-o", out)
	r, most := peakOf(t, c)
	if r.code != exitOK {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	t.Logf("%d KiB for %d lines, %d KiB for %d", few, lines, most, 10*lines)
	// Where the collector comes late more garbage piles up; each line that is kept is more
	// than three times as much in all.
	if most > few*5/2 {
		t.Errorf("ten times the lines take %d KiB instead of %d", most, few)
	}
	p, err := format.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	var sum uint64
	for i := range p.Samples {
		sum += p.Samples[i].Weight
	}
	if sum != 10*lines*count {
		t.Errorf("the file has %d in all, want %d", sum, 10*lines*count)
	}
}

// writeFolded writes lines of a few different stacks.
func writeFolded(t *testing.T, file string, lines, count int) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range lines {
		fmt.Fprintf(w, "m%d;n%d;o%d %d\n", i%7, i%11, i%13, count)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// peakOf runs a command and looks, while it runs, at the most memory that it had (KiB).
// The kernel's account of children has that of the process that forked, too.
func peakOf(t *testing.T, c *exec.Cmd) (result, int64) {
	t.Helper()
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	var most int64
	for {
		select {
		case err := <-done:
			return outcome(t, c, err, &stdout, &stderr), most
		case <-time.After(5 * time.Millisecond):
		}
		f, err := os.Open(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
		if err != nil {
			continue
		}
		for in := bufio.NewScanner(f); in.Scan(); {
			var kib int64
			if n, _ := fmt.Sscanf(in.Text(), "VmHWM: %d kB", &kib); n == 1 {
				most = max(most, kib)
			}
		}
		f.Close()
	}
}
