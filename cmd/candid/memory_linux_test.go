package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/profile"
)

// TestConvertInBoundedMemory converts a file that is several times as long as another and contains
// nothing new: it takes as much memory.
func TestConvertInBoundedMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes a file of 200 MB")
	}
	dir := t.TempDir()
	// Both hold more samples than are kept one by one.
	short, long := filepath.Join(dir, "short.folded"), filepath.Join(dir, "long.folded")
	const lines, count = 1_600_000, 50
	times := 3
	if fixture.Full(t) {
		times = 10
	}
	writeFolded(t, short, lines, count)
	writeFolded(t, long, times*lines, count)

	r, few := peakOf(t, command(t, "convert", short, "-o", filepath.Join(dir, "short.jfr")))
	if r.code != exitOK {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	out := filepath.Join(dir, "long.jfr")
	r, most := peakOf(t, command(t, "convert", long, "-o", out))
	if r.code != exitOK {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	t.Logf("%d KiB for %d lines, %d KiB for %d", few, lines, most, times*lines)
	// In memory each line takes eight bytes or more.
	if more := (most - few) << 10; more > int64(4*(times-1)*lines) {
		t.Errorf("%d times the lines take %d bytes more", times, more)
	}
	p, err := format.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	var sum uint64
	for i := range p.Samples {
		sum += p.Samples[i].Weight
	}
	if want := uint64(times * lines * count); sum != want {
		t.Errorf("the file has %d in all, want %d", sum, want)
	}
}

// TestSumsInBoundedMemory converts a recording that has ten times the samples of another, in the
// same stacks, to formats that contain no single samples: it takes as much memory.
func TestSumsInBoundedMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes a file of 100 MB")
	}
	dir := t.TempDir()
	short, long := filepath.Join(dir, "short.jfr"), filepath.Join(dir, "long.jfr")
	const samples = 400_000
	writeRecording(t, short, samples)
	writeRecording(t, long, 10*samples)
	all := [][]string{
		{"convert", "", "-o", filepath.Join(dir, "out.pb.gz"), "--force"},
		{"convert", "", "-o", filepath.Join(dir, "out.json"), "--force", "--from", "1s", "--to", "100h", "--thread", "worker"},
		{"diff", "", short, "--thread", "worker", "-o", filepath.Join(dir, "out.diff.html"), "--force"},
	}
	if fixture.Full(t) {
		all = append(all, [][]string{
			{"convert", "", "-o", filepath.Join(dir, "out.collapsed"), "--force"},
			{"convert", "", "-o", filepath.Join(dir, "out.html"), "--force"},
			{"report", ""},
			{"diff", "", short},
		}...)
	}
	for _, args := range all {
		var peaks [2]int64
		for i, in := range []string{short, long} {
			args[1] = in
			r, most := peakOf(t, command(t, args...))
			if r.code != exitOK {
				t.Fatalf("%v: exit code %d\n%s", args, r.code, r.err)
			}
			peaks[i] = most
		}
		t.Logf("%v: %d KiB for %d samples, %d KiB for %d", args, peaks[0], samples, peaks[1], 10*samples)
		// A sample that is kept takes ten bytes or more.
		if more := (peaks[1] - peaks[0]) << 10; more > 5*9*samples {
			t.Errorf("%v: nine times the samples more take %d bytes more", args, more)
		}
	}
}

// TestSinglesInBoundedMemory does the same for formats that contain each sample: what does not fit
// in memory is packed in a file on the way from the input to the output.
func TestSinglesInBoundedMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes files of 200 MB")
	}
	dir := t.TempDir()
	short, long := filepath.Join(dir, "short.jfr"), filepath.Join(dir, "long.jfr")
	samples, formats := 600_000, []string{"jfr"}
	if fixture.Full(t) {
		samples, formats = 1_000_000, []string{"jfr", "firefox", "speedscope"}
	}
	writeRecording(t, short, samples)
	writeRecording(t, long, 10*samples)
	for _, name := range formats {
		out := "/dev/null"
		if name == "jfr" {
			out = filepath.Join(dir, "out.jfr") // written elsewhere it would keep a chunk in memory
		}
		var peaks [2]int64
		for i, in := range []string{short, long} {
			c := command(t, "convert", in, "--format", name, "-o", out, "--force")
			c.Env = append(os.Environ(), "TMPDIR="+dir)
			r, most := peakOf(t, c)
			if r.code != exitOK {
				t.Fatalf("%s: exit code %d\n%s", name, r.code, r.err)
			}
			peaks[i] = most
		}
		t.Logf("%s: %d KiB for %d samples, %d KiB for %d", name, peaks[0], samples, peaks[1], 10*samples)
		// In memory each sample takes eight bytes or more.
		if more := (peaks[1] - peaks[0]) << 10; more > 6*9*int64(samples) {
			t.Errorf("%s: nine times the samples more take %d bytes more", name, more)
		}
	}
}

// writeRecording writes samples of a few different stacks.
func writeRecording(t *testing.T, file string, samples int) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	b := profile.NewBuilder()
	b.Meta().Start = time.Date(2026, 5, 4, 12, 30, 0, 0, time.UTC)
	var nodes [1000]uint32
	for i := range nodes {
		n := b.Node(profile.RootNode, b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "main"}), BCI: -1}))
		nodes[i] = b.Node(n, b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: fmt.Sprint("run", i)}), BCI: -1}))
	}
	for i := range 20 {
		b.Thread(1, 10+i, fmt.Sprint("worker", i))
	}
	events := []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1_000_000}}
	s := jfr.NewStream(f, b, func() jfr.Info { return jfr.Info{Meta: b.Meta(), Events: events} })
	for i := range samples {
		s.Add(profile.Sample{Time: uint64(i) * 50_123, Weight: 1_000_000, Node: nodes[i*7919%len(nodes)], Thread: uint32(i * 31 % 20), State: profile.StateRunning})
	}
	if err := errors.Join(s.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// writeFolded writes lines of a few different stacks.
func writeFolded(t *testing.T, file string, lines, count int) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	const period = 7 * 11 * 13 // then the same lines repeat
	var round []byte
	ends := [period]int{}
	for i := range period {
		round = fmt.Appendf(round, "m%d;n%d;o%d %d\n", i%7, i%11, i%13, count)
		ends[i] = len(round)
	}
	w := bufio.NewWriter(f)
	for range lines / period {
		w.Write(round) // Flush returns its error
	}
	if left := lines % period; left > 0 {
		w.Write(round[:ends[left-1]])
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// peakOf runs a command and observes its peak memory (KiB) while it runs. The kernel's account of
// children also contains that of the process that forked.
func peakOf(t *testing.T, c *exec.Cmd) (result, int64) {
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
