package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/record"
)

// TestRotatedFiles records into one file after the other, without stopping, and compares what each
// holds with what the engine handed over meanwhile.
func TestRotatedFiles(t *testing.T) {
	c := exec.Command("sh", "-c", "while :; do :; done")
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	dir := t.TempDir()
	var files []*streaming
	file := func() *streaming {
		out := &output{path: filepath.Join(dir, fmt.Sprintf("%d.jfr", len(files))), name: "jfr", flags: &outputFlags{}}
		files = append(files, newStreaming(out, func(line string) { t.Error(line) }))
		return files[len(files)-1]
	}
	r, err := record.Start(t.Context(), record.Options{PIDs: []int{c.Process.Pid}, Hz: 499, Events: []string{"cpu"}, Beside: file()})
	if errors.Is(err, capture.ErrPermission) || errors.Is(err, capture.ErrUnsupported) {
		t.Skipf("recording is not possible here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var parts []*record.Result
	for range 2 {
		time.Sleep(1200 * time.Millisecond)
		p, err := r.Rotate(file())
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, p)
	}
	time.Sleep(1200 * time.Millisecond)
	last, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range append(parts, last) {
		path, err := files[i].finish(p.Profile)
		if err != nil {
			t.Fatal(err)
		}
		n, handed := in(path), int(p.Costs.Stats.Samples)
		t.Logf("%s: %d samples in %v", filepath.Base(path), n, p.Profile.Meta.Duration)
		if n == 0 || n != handed || n != int(p.Profile.SampleCount()) {
			t.Errorf("file %d holds %d samples, the engine handed over %d, the profile has %d", i, n, handed, p.Profile.SampleCount())
		}
	}
}
