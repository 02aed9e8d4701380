package store_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/store"
)

// A recording of a machine at 99 Hz of half a minute and more is stored as if it had been 19 Hz: parts
// of a fifth of half a minute, each stretched to half a minute. So a block has as many samples as
// in use. What is new at first is names and stacks; the bytes of a day are reckoned with those of the
// last third of the time, in which there still are more new ones than later in a day.
func TestStoredBytesOfRecordings(t *testing.T) {
	fixture.OnlyFull(t, "TestWhatWasAppendedComesBack")
	dir, seconds := t.TempDir(), 60
	r, err := record.Start(t.Context(), record.Options{All: true, Hz: 99, Events: []string{"cpu"}})
	if err != nil {
		t.Skipf("recording is not possible here: %v", err)
	}
	for range runtime.NumCPU() { // both CPUs are busy, with programs that begin and end all the time
		busy := exec.Command("sh", "-c", "while :; do find /usr/share -type f | sort | cksum >/dev/null; done")
		if err := fixture.Spawn(busy); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = busy.Process.Kill()
			_ = busy.Wait()
		}()
	}
	w, err := store.Create(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const stretch = 99.0 / 19
	part := 30 * time.Second * 19 / 99
	at := time.Now().Add(-time.Duration(float64(seconds)*stretch) * time.Second)
	var samples, before uint64
	size := int64(0)
	for began := time.Now(); time.Since(began) < time.Duration(seconds)*time.Second; {
		time.Sleep(part)
		res, err := r.Rotate(nil)
		if err != nil {
			t.Fatal(err)
		}
		p := res.Profile
		p.Change(func(s *profile.Sample) { s.Time = uint64(float64(s.Time) * stretch) })
		p.Meta.Start = at
		samples += p.SampleCount()
		if err := w.Append(p, func(i int) string { return filepath.Base(p.Processes[i].Command) }, at, at.Add(30*time.Second)); err != nil {
			t.Fatal(err)
		}
		at = at.Add(30 * time.Second)
		if time.Since(began) < time.Duration(seconds)*time.Second*2/3 {
			before, size = samples, w.Size()
		}
	}
	if _, err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	each := float64(w.Size()-size) / float64(samples-before)
	day := float64(w.Size()) + each*2*19*86400
	t.Logf("%d samples, %d bytes, in the last third %.2f bytes a sample: %.1f MB a day of two CPUs at 19 Hz", samples, w.Size(), each, day/1e6)
	// Other programs of the machine decide how many names and stacks are new: on one that builds and tests
	// other programs most of them are. So the bound is on what each sample takes besides these.
	var of [4]int64
	for i, name := range []string{"names", "nodes", "processes", "samples"} {
		list, err := filepath.Glob(filepath.Join(dir, "*", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range list {
			fi, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			of[i] += fi.Size()
		}
	}
	each = float64(of[3]) / float64(samples)
	t.Logf("names %d, nodes %d, processes %d bytes, samples %d: %.2f bytes each", of[0], of[1], of[2], of[3], each)
	if each > 6 {
		t.Errorf("a sample takes %.2f bytes", each)
	}
}
