package jfr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// seen is an event as readers see it that know nothing of candid.
type seen struct {
	typ     uint64
	trace   uint64
	samples uint64
	weight  uint64
}

// samplesSeen returns the samples of a file in its order.
func samplesSeen(t *testing.T, b []byte) (all []seen) {
	t.Helper()
	r := &reader{in: &file{b: b}, size: int64(len(b)), b: profile.NewBuilder()}
	for base := int64(0); base < r.size; {
		c, err := r.header(base)
		if err != nil {
			t.Fatal(err)
		}
		for at := int64(headerSize); at < c.size; {
			content, size, err := r.event(c, at, c.size)
			if err != nil {
				t.Fatal(err)
			}
			at += size
			cur := &cursor{b: content}
			e := seen{typ: cur.long(), samples: 1}
			if e.typ != typeExecutionSample && e.typ != typeWallClockSample && e.typ != typeSample {
				continue
			}
			cur.long() // time
			cur.long() // thread
			e.trace = cur.long()
			cur.long() // state
			if e.typ == typeWallClockSample {
				e.samples = cur.long()
			}
			cur.long() // length
			cur.long() // kind
			e.weight = cur.long()
			all = append(all, e)
		}
		base += c.size
	}
	return all
}

func (f *file) ReadAt(p []byte, off int64) (int, error) { return growing{f}.ReadAt(p, off) }

const period = 1_000_000 // of the events of these tests

// stepByStep writes samples in flushes.
func stepByStep(t *testing.T, p *profile.Profile, begin newStream, flushes [][]profile.Sample) []byte {
	t.Helper()
	var out file
	s := begin(&out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
	for i, samples := range flushes {
		for _, sample := range samples {
			if err := s.Add(sample); err != nil {
				t.Fatal(err)
			}
		}
		flush := s.Flush
		if i == len(flushes)-1 {
			flush = func() error { return s.Finish(p) }
		}
		if err := flush(); err != nil {
			t.Fatal(err)
		}
	}
	return out.b
}

// Each flush ends with a sample of wall time that is written as one interval, and each
// ExecutionSample follows such a sample.
func TestOrderOfWaits(t *testing.T) {
	both := []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: period}, {Name: "wall", Kind: profile.EventWall, Unit: "nanoseconds", Period: period}, {Name: "page-faults", Kind: profile.EventCounter, Unit: "count", Period: 1}}
	alone := []profile.Event{{Name: "page-faults", Kind: profile.EventCounter, Unit: "count", Period: 1}, {Name: "wall", Kind: profile.EventWall, Unit: "nanoseconds", Period: period}}
	// c is a sample of CPU time, p one of another event, w5 a wait of 5 intervals, r5 as long on a
	// CPU, and a suffix /2 gives the thread; otherwise each has its own. / begins a flush.
	for _, c := range []struct {
		about   string
		events  []profile.Event
		samples string
		want    string
	}{
		{"a wait is held back until one comes that is told as one", both, "c w5 c r1 c p w3 w2 c r1 c / c", "c c w5 w1 c p c c w3 w2 w1 c"},
		{"the last that is told as one comes last", both, "c r1 c w5 c w0.3 / w3 c", "c c c w5 w0 w1 c w3"},
		{"a wait gives one interval where none is told as one", both, "c w2 c w5 c r7 / c", "c c c w2 w4 w7 w1 c"},
		{"a piece of a wait gives one, too", both, "c w+5 / c w+5 / c", "c w4 w1 c w4 w1 c"},
		{"what is too short is told as one, and owed", both, "c w0.3 / c w1/0 / w1/0", "c w1 c w1 w0"},
		{"what is no wait is not told in pieces", both, "c r5/1 / c r1/1 / w1/1", "c w1 c w1 w5"},
		{"the nearest to one is told as one", both, "c r5/1 r3/2 r9/3 / r1/2", "c w5 w9 w1 w3"},
		{"nothing follows on the last ones", both, "c w5 c w2", "c c w5 w2"},
		{"nothing needs an order without samples of CPU time", alone, "p w5 p r1 w0.2 / p w3", "p w5 p w1 w0 p w3"},
		{"without wall time all is as it comes", both, "p c c p / c p", "p c c p c p"},
	} {
		p := *profiletest.Java()
		p.Events = c.events
		p.Threads = make([]profile.Thread, 40)
		p.Samples = nil
		var flushes [][]profile.Sample
		own, now := uint32(20), uint64(100*period)
		for flush := range strings.SplitSeq(c.samples, " / ") {
			var samples []profile.Sample
			for word := range strings.FieldsSeq(flush) {
				now += 20 * period
				s := profile.Sample{Time: now, Weight: period, Thread: own, Node: 1, State: profile.StateRunning}
				own++
				switch word[0] {
				case 'p':
					s.Event = uint16(slices.IndexFunc(c.events, func(e profile.Event) bool { return e.Unit == "count" }))
				case 'w', 'r':
					s.Event = 1
					if word[0] == 'w' {
						s.State = profile.StateSleeping
					}
					length, thread, mine := strings.Cut(word[1:], "/")
					if mine {
						n, _ := strconv.Atoi(thread)
						s.Thread = uint32(n)
					} else if word == "w0.3" {
						s.Thread = 0
					}
					if more, ok := strings.CutPrefix(length, "+"); ok {
						s.Thread, length = 1, more
						s.Flags = profile.Continued
						s.Time = uint64(100+5*(len(flushes)+1)) * period
					}
					n, err := strconv.ParseFloat(length, 64)
					if err != nil {
						t.Fatal(err)
					}
					s.Weight = uint64(n * period)
				}
				samples = append(samples, s)
			}
			flushes = append(flushes, samples)
			p.Samples = append(p.Samples, samples...)
		}
		b := stepByStep(t, &p, NewStream, flushes)
		var got []string
		for _, e := range samplesSeen(t, b) {
			switch e.typ {
			case typeExecutionSample:
				got = append(got, "c")
			case typeSample:
				got = append(got, "p")
			default:
				got = append(got, fmt.Sprint("w", e.samples))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s is told as\n%s, want\n%s", c.about, c.samples, strings.Join(got, " "), c.want)
		}
		// candid reads what was written.
		back, err := parse(b)
		if err != nil {
			t.Fatalf("%s: %v", c.about, err)
		}
		want := profile.NewBuilder()
		for _, s := range p.Samples {
			want.Add(s)
		}
		list := func(samples []profile.Sample) (out []string) {
			for _, s := range samples {
				out = append(out, fmt.Sprint(s.Time, s.Weight, s.Thread, s.Event, s.State, s.Flags))
			}
			slices.Sort(out)
			return out
		}
		if got, want := list(back.Samples), list(want.Finish().Samples); !slices.Equal(got, want) {
			t.Errorf("%s: candid reads\n%q, want\n%q", c.about, got, want)
		}
	}
}

// Other readers count a sample of wall time as often as its number says: each stack has the time
// that it took, and readers that multiply ExecutionSamples by the latest number get the right sum.
func TestOthersCountWaits(t *testing.T) {
	p := *profiletest.Java()
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: period}, {Name: "wall", Kind: profile.EventWall, Unit: "nanoseconds", Period: period}}
	p.Samples = p.Samples[:2000]
	var waited, cpu uint64
	var flushes [][]profile.Sample
	for i := range p.Samples {
		s := &p.Samples[i]
		s.Time = uint64(i+100) * 20 * period
		if s.Event = min(uint16(i%4), 1); s.Event == 0 {
			s.Weight, s.State = period, profile.StateRunning
			cpu++
			continue
		}
		s.Weight, s.State = uint64(i)*7_919, profile.StateSleeping // from 8 us to 16 ms
		waited += s.Weight
	}
	for samples := range slices.Chunk(p.Samples, 300) {
		flushes = append(flushes, samples)
	}
	b := stepByStep(t, &p, NewStream, flushes)
	all := samplesSeen(t, b)
	var events, wall, some uint64
	counted, last := uint64(0), uint64(1)
	for _, e := range all {
		switch e.typ {
		case typeExecutionSample:
			events++
			counted += last
		case typeWallClockSample:
			last = e.samples
			wall += e.samples
			if e.samples > 1 {
				some++
			}
			if off := int64(e.samples*period) - int64(e.weight); off <= -period || off >= period {
				t.Errorf("%d ns are told as %d intervals of %d", e.weight, e.samples, period)
			}
		}
	}
	if events != cpu || counted != cpu || some < 1000 {
		t.Errorf("%d samples of %d on a CPU, counted as %d; %d of several intervals", events, cpu, counted, some)
	}
	// For each thread less than half an interval is missing, or too much.
	if off := 2 * (int64(wall*period) - int64(waited)); off < -period*int64(len(p.Threads)) || off > period*int64(len(p.Threads)) {
		t.Errorf("%d ns of wall time, others see %d", waited, wall*period)
	}
	if got, err := parse(b); err != nil || len(got.Samples) != 2000 {
		t.Errorf("%v", err)
	}
}
