package main

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
)

// replay adds samples of the same few thousand stacks to a stream and to the profile beside it, as
// a recording does.
type replay struct {
	s       *streaming
	b       *profile.Builder
	samples int
	stacks  []uint32
}

func newReplay(t *testing.T, path string) *replay {
	t.Helper()
	out := &output{path, "jfr", &outputFlags{path: path}}
	r := &replay{s: newStreaming(out, func(line string) { t.Log(line) }), b: profile.NewBuilder()}
	r.b.Meta().Start = time.Unix(1e9, 0)
	for i := range 10_000 {
		node := uint32(profile.RootNode)
		for n := i; n > 0; n /= 7 {
			f := profile.Func{Name: "f" + string(rune('a'+n%7))}
			node = r.b.Node(node, r.b.Frame(profile.Frame{Func: r.b.Func(f), Line: int32(n % 100), BCI: -1}))
		}
		r.stacks = append(r.stacks, node)
	}
	for i := range 4 {
		r.b.Thread(1, 2+i, "t")
	}
	r.s.Begin(record.Begun{Start: r.b.Meta().Start, Events: []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1e6}}})
	return r
}

// observed is how many observations there are in a batch.
const observed = 20

// add adds batches of samples.
func (r *replay) add(batches int) {
	for range batches {
		for range 1 << 11 {
			r.samples++
			s := profile.Sample{Time: uint64(r.samples) * 1e6, Weight: 1e6, Node: r.stacks[r.samples*31%len(r.stacks)], Thread: uint32(r.samples % 4)}
			r.b.Add(s)
			r.s.Sample(r.b, s)
		}
		for range observed {
			r.b.Observe(profile.Observation{
				Kind: profile.NetworkUtilization, Process: -1, Time: uint64(r.samples) * 1e6,
				Values: []profile.Value{{Text: "lo"}, {Number: uint64(r.samples)}, {Number: 1}},
			})
		}
		r.s.flushed = time.Time{}
		r.s.Batch(r.b, record.Progress{Elapsed: time.Duration(r.samples) * time.Millisecond})
		record.SumUp(r.b, r.s)
	}
}

// finish ends the recording.
func (r *replay) finish() (*profile.Profile, string, error) {
	p := r.b.Finish()
	p.Events = r.s.begun.Events
	name, err := r.s.finish(p)
	return p, name, err
}

// inUse returns how much memory is in use, in bytes.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A recording of the same stacks takes no more memory if it is ten times as long, and the file has
// every sample.
func TestLongRecordingInBoundedMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jfr")
	before := inUse()
	r := newReplay(t, path)
	r.add(64) // all stacks, by each thread, summed up twice
	short := inUse() - before
	r.add(9 * 64)
	long := inUse() - before
	t.Logf("%d KiB after 131072 samples, %d after %d", short>>10, long>>10, r.samples)
	// Keeping each single sample would take some ten bytes more for each.
	if long > short+512<<10 {
		t.Errorf("ten times the samples take %d KiB instead of %d", long>>10, short>>10)
	}
	p, _, err := r.finish()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := format.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.Samples) != r.samples || p.SampleCount() != uint64(r.samples) {
		t.Errorf("%d samples in the file and %d counted, of %d", len(kept.Samples), p.SampleCount(), r.samples)
	}
	if n := r.samples >> 11 * observed; len(kept.Observations) != n {
		t.Errorf("%d observations in the file, of %d", len(kept.Observations), n)
	}
	if s, k := p.Select(profile.Filter{}), kept.Select(profile.Filter{}); s.All != k.All || s.Quality != k.Quality {
		t.Errorf("the profile has %+v, the file %+v", s.All, k.All)
	}
}

// If the file can no longer be written, what it lacks is saved elsewhere.
func TestSummedUpWhenTheDiskFills(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path := filepath.Join(t.TempDir(), "x.jfr")
	r := newReplay(t, path)
	r.add(40)
	if r.b.Unsummed() == r.samples {
		t.Fatal("nothing was summed up")
	}
	r.s.file.Close()
	r.add(3)
	_, _, err := r.finish()
	if err == nil || !strings.Contains(err.Error(), "what was recorded after the first") {
		t.Fatalf("%v", err)
	}
	words := strings.Fields(err.Error())
	rest, err := format.Read(words[len(words)-1])
	if err != nil {
		t.Fatal(err)
	}
	part, err := format.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	have := map[uint64]bool{}
	for _, p := range []*profile.Profile{part, rest} {
		for i := range p.Samples {
			have[p.Samples[i].Time] = true
		}
	}
	if len(have) != r.samples {
		t.Errorf("%d samples are in one of the files, of %d", len(have), r.samples)
	}
}

// A profile that is to be filtered, or shown by time, keeps each of its samples.
func TestNotSummedUp(t *testing.T) {
	r := newReplay(t, filepath.Join(t.TempDir(), "x.jfr"))
	r.s.whole = true
	r.add(70)
	if p, _, err := r.finish(); err != nil || len(p.Samples) != r.samples {
		t.Errorf("%d samples, of %d; %v", len(p.Samples), r.samples, err)
	}
}

var _ record.Keeper = (*streaming)(nil)
