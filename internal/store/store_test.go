package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// noon is a time in the middle of a day, and recent.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// made returns a profile of some services with random stacks.
func made(rnd *rand.Rand, start time.Time, services, samples int) *profile.Profile {
	b := profile.NewBuilder()
	*b.Meta() = profile.Meta{Start: start, Duration: 30 * time.Second, Host: "host", Engine: "engine", Version: "1", Notes: []string{"a note"}, Cost: profile.Cost{OwnCPU: time.Second}}
	var threads []uint32
	for i := range services {
		b.AddProcess(profile.Process{PID: 100 + i, Command: fmt.Sprintf("program%d", i), Runtime: "hotspot 21"})
		t := b.Thread(100+i, 100+i, "main")
		b.Threads()[t].Kind = "java"
		threads = append(threads, t, b.Thread(100+i, 5000+i, fmt.Sprint("pool-", i)))
	}
	call := b.Syscall("futex")
	for range samples {
		node := uint32(profile.RootNode)
		for depth := range 3 + rnd.IntN(6) {
			f := b.Func(profile.Func{Name: fmt.Sprintf("f%d", rnd.IntN(3+depth)), Module: "m", File: "f.c", Start: 7})
			node = b.Node(node, b.Frame(profile.Frame{Func: f, Line: int32(rnd.IntN(3)), BCI: -1, Kind: walk.KindC2, Prov: walk.Derived, Flags: walk.Coarse}))
		}
		s := profile.Sample{Time: uint64(rnd.Int64N(30e9)), Weight: 52_631_579, Node: node, Thread: threads[rnd.IntN(len(threads))], State: profile.StateRunning}
		switch rnd.IntN(8) {
		case 0:
			s.Event, s.State, s.Weight, s.Syscall = 1, profile.StateSleeping, 1+uint64(rnd.Int64N(int64(s.Time)+1)), call
		case 1:
			s.Weight += uint64(rnd.IntN(1000))
		case 2:
			s.End, s.Flags = walk.EndBadPC, profile.Guessed
		}
		b.Add(s)
	}
	p := b.Finish()
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 52_631_579}, {Name: "off-cpu", Kind: profile.EventOffCPU, Unit: "nanoseconds", Period: 1}}
	p.Losses.Lost = 3
	return p
}

func serviceOf(p *profile.Profile) func(int) string {
	return func(i int) string { return "service of " + p.Processes[i].Command }
}

// key is what a sample is in words, with its whole stack.
func key(p *profile.Profile, s *profile.Sample) string {
	call := ""
	if len(p.Syscalls) > 0 {
		call = p.Syscalls[s.Syscall]
	}
	text := fmt.Sprintf("%+v %s %v %v %v %v", p.Threads[s.Thread], p.Events[s.Event].Name, s.State, s.End, s.Flags, call)
	for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
		f := p.Frames[p.Nodes[n].Frame]
		text += fmt.Sprintf("\n%+v %v %v %v %v", p.Funcs[f.Func], f.Line, f.Kind, f.Prov, f.Flags)
	}
	return text
}

type total struct{ n, weight uint64 }

func totals(p *profile.Profile, into map[string]total) map[string]total {
	p.Each(func(s *profile.Sample, n uint64) {
		k := key(p, s)
		t := into[k]
		into[k] = total{t.n + n, t.weight + s.Weight}
	})
	return into
}

func create(t *testing.T, dir string, o Options) *Writer {
	t.Helper()
	if o.Log == nil {
		o.Log = func(string) {}
	}
	w, err := Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func put(t *testing.T, w *Writer, p *profile.Profile, from time.Time) {
	t.Helper()
	if err := w.Append(p, serviceOf(p), from, from.Add(30*time.Second)); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *Reader {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Whatever was appended comes back, to the nanosecond, in every way of keeping samples, and also
// when the store was closed and opened between two of the profiles.
func TestWhatWasAppendedComesBack(t *testing.T) {
	dir, rnd := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	want := map[string]total{}
	w := create(t, dir, Options{})
	for i := range 20 {
		at := noon.Add(time.Duration(i) * 30 * time.Second)
		p := made(rnd, at, 5, 300)
		totals(p, want)
		put(t, w, p, at)
		if i%7 == 6 {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			w = create(t, dir, Options{})
		}
	}
	r := open(t, dir)
	for _, keep := range []profile.Keep{profile.KeepSamples, profile.KeepPacked, profile.KeepTracks, profile.KeepSums, profile.KeepWeights} {
		p, err := r.Profile(Query{From: noon.Add(-time.Hour), To: noon.Add(time.Hour), Keep: keep})
		if err != nil {
			t.Fatal(err)
		}
		got := totals(p, map[string]total{})
		if len(got) != len(want) {
			t.Errorf("keep %d: %d different samples, want %d", keep, len(got), len(want))
		}
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("keep %d: %s: %+v, want %+v", keep, k, got[k], v)
			}
		}
		if p.Losses.Lost != 60 || p.Meta.Cost.OwnCPU != 20*time.Second || p.Meta.Host != "host" || p.Meta.Start != noon.Local() || p.Meta.Duration != 10*time.Minute {
			t.Errorf("keep %d: losses %+v, %+v", keep, p.Losses, p.Meta)
		}
	}
	if d := r.Damage(); len(d) > 0 {
		t.Errorf("damage: %q", d)
	}
}

// Services, and the profile of one of them, add up to what was appended, also for a range of time
// that cuts blocks.
func TestServicesAndRanges(t *testing.T) {
	dir, rnd := t.TempDir(), rand.New(rand.NewPCG(3, 4))
	w := create(t, dir, Options{})
	for i := range 10 {
		at := noon.Add(time.Duration(i) * 30 * time.Second)
		put(t, w, made(rnd, at, 5, 300), at)
	}
	r := open(t, dir)
	all := func(from, to time.Time) (sum ServiceUse) {
		list, err := r.Services(from, to)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range list {
			if i > 0 && s.CPU > list[i-1].CPU {
				t.Errorf("%v are not in order", list)
			}
			sum.CPU += s.CPU
			sum.Samples += s.Samples
			p, err := r.Profile(Query{From: from, To: to, Service: s.Name, Keep: profile.KeepSums})
			if err != nil {
				t.Fatal(err)
			}
			if n, cpu := p.EventSamples()[0], p.EventWeights()[0]; n != s.Samples || cpu != uint64(s.CPU) {
				t.Errorf("%s: %d samples with %d ns, want %+v", s.Name, n, cpu, s)
			}
			if len(p.Processes) != 1 || "service of "+p.Processes[0].Command != s.Name {
				t.Errorf("%s: processes %+v", s.Name, p.Processes)
			}
		}
		return sum
	}
	begin, end := noon.Add(-time.Minute), noon.Add(time.Hour)
	whole := all(begin, end)
	if whole.Samples == 0 {
		t.Fatal("no samples")
	}
	for _, middle := range []time.Duration{17 * time.Second, 100 * time.Second, 150 * time.Second} {
		a, b := all(begin, noon.Add(middle)), all(noon.Add(middle), end)
		if a.CPU+b.CPU != whole.CPU || a.Samples+b.Samples != whole.Samples || a.Samples == 0 || b.Samples == 0 {
			t.Errorf("cut after %v: %+v and %+v are not %+v", middle, a, b, whole)
		}
	}
	// As a strip, and with samples of a minute as one.
	strip, err := r.Strip(begin, end, "", 7)
	if err != nil {
		t.Fatal(err)
	}
	var cpu time.Duration
	var samples uint64
	for i := range strip.CPU {
		cpu += strip.CPU[i]
		samples += strip.Samples[i]
	}
	if cpu != whole.CPU || samples != whole.Samples || !strip.Stored[0] || strip.Stored[6] {
		t.Errorf("the strip has %v in %d samples, want %+v; stored %v", cpu, samples, whole, strip.Stored)
	}
	p, err := r.Profile(Query{From: begin, To: end, Every: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if n, w := p.EventSamples()[0], p.EventWeights()[0]; w != uint64(whole.CPU) || n > whole.Samples || n == 0 {
		t.Errorf("samples of a minute as one: %d with %d ns of %+v", n, w, whole)
	}
	if p, err := r.Profile(Query{From: begin, To: end, Service: "service of"}); err != nil || p.SampleCount() != 0 {
		t.Errorf("part of a name: %d samples, %v", p.SampleCount(), err)
	}
}

// A second writer is refused, until the first one ends.
func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Options{})
	if _, err := Create(dir, Options{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("a second writer: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	create(t, dir, Options{})
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNoStore) {
		t.Errorf("an empty directory: %v", err)
	}
}
