package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// convert measures the peak memory of converting: a small file of collapsed stacks, and one of a
// gigabyte that repeats the same stacks.
func (b *bench) convert() {
	for _, size := range []struct {
		what  string
		bytes int64
	}{{"10 MB", 10e6}, {"1 GB", 1e9}} {
		if b.quick {
			size.what, size.bytes = size.what+" (a tenth of it)", size.bytes/10
		}
		r := row{Section: "convert", What: "candid's peak memory, collapsed stacks to JFR, " + size.what, Unit: "MB"}
		var peaks []float64
		for range 3 {
			peak, err := b.converts(size.bytes)
			if err != nil {
				r.Failed = err.Error()
				break
			}
			peaks = append(peaks, peak/1e6)
		}
		if r.Failed == "" {
			r.Value, r.Min, r.Max = spread(peaks)
			r.Runs = len(peaks)
		}
		b.add(r)
	}
}

// converts writes a file of size bytes and returns candid's peak memory, in bytes, while it
// converted it, by the kernel's account.
func (b *bench) converts(size int64) (float64, error) {
	in, out := filepath.Join(b.work, "convert.folded"), filepath.Join(b.work, "convert.jfr")
	defer os.Remove(in)
	defer os.Remove(out)
	f, err := os.Create(in)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for n, i := int64(0), 0; n < size && err == nil; i++ {
		k := i % 20_000
		var wrote int
		wrote, err = fmt.Fprintf(w, "[worker-%d tid=%d];com.example.server.Main.run;com.example.orders.Service%d.handle;com.example.orders.Order%d.total;java.util.HashMap.get 5\n", k%16, k%16, k%101, k%997)
		n += int64(wrote)
	}
	if err == nil {
		err = w.Flush()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(b.candid, "convert", in, "-o", out)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var most float64
	for {
		select {
		case err := <-done:
			if err != nil {
				return 0, fmt.Errorf("convert: %w: %s", err, said.Bytes())
			}
			if most == 0 {
				return 0, fmt.Errorf("the system does not say how much memory a process had")
			}
			return most, nil
		case <-time.After(2 * time.Millisecond):
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil {
			continue
		}
		for line := range bytes.Lines(status) {
			var kib float64
			if n, _ := fmt.Sscanf(string(line), "VmHWM: %f kB", &kib); n == 1 {
				most = max(most, kib*1024)
			}
		}
	}
}
