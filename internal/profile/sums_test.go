package profile

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/candid-profiler/candid/internal/walk"
)

// randomly adds samples to both builders, one of which sums up now and then.
func randomly(r *rand.Rand, samples, each int, whole, summed *Builder) {
	for _, b := range []*Builder{whole, summed} {
		b.p.Events = []Event{{Name: "cpu", Kind: EventCPU, Unit: "nanoseconds", Period: 1e6}, {Name: "off-cpu", Kind: EventOffCPU, Unit: "nanoseconds"}}
		for i := range 20 {
			b.Frame(Frame{Func: b.Func(Func{Name: string(rune('a' + i))}), Line: int32(i), BCI: -1, Kind: walk.Kind(i % int(walk.NumKinds))})
		}
		for i := range 5 {
			b.Thread(1, 10+i, "t")
		}
		b.Syscall("read")
	}
	for i := range samples {
		s := Sample{Time: uint64(i+1) * 1e6, Weight: 1e6 + r.Uint64N(1000), Thread: r.Uint32N(5)}
		for range 1 + r.IntN(6) {
			f := r.Uint32N(20)
			s.Node = whole.Node(s.Node, f)
		}
		s.Syscall = uint16(r.IntN(2))
		s.State = []State{StateRunning, StateRunning, StateRunnable, StateSleeping}[r.IntN(4)]
		if s.State == StateSleeping {
			s.Event, s.Flags = 1, []SampleFlags{0, Continued}[r.IntN(2)]
			s.Weight = 1e9
		}
		s.End = []walk.End{walk.EndComplete, walk.EndComplete, walk.EndTruncated}[r.IntN(3)]
		if r.IntN(9) == 0 {
			s.Flags |= Guessed
		}
		whole.Add(s)
		summed.Add(s)
		if r.IntN(each) == 0 {
			summed.SumUp()
		}
	}
	summed.nodes = whole.nodes
}

// The counts of samples that are summed up are those of the same samples one by one.
func TestSumUp(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		whole, summed := NewBuilder(), NewBuilder()
		randomly(r, 3000, 1+r.IntN(1000), whole, summed)
		summed.SumUp()
		if got := summed.Samples(); got != 3000 {
			t.Fatalf("the builder has %d samples, of 3000", got)
		}
		p, q := whole.Profile(), summed.Profile()
		if r.IntN(2) == 0 {
			nodes := whole.nodes
			p = whole.Finish()
			summed.nodes = nodes
			q = summed.Finish()
		}
		for i := range q.Samples {
			if q.Samples[i].State < StateSleeping {
				t.Fatalf("seed %d: sample %d was to be summed up", seed, i)
			}
		}
		if p.SampleCount() != q.SampleCount() || uint64(len(p.Samples)) != p.SampleCount() {
			t.Fatalf("seed %d: %d samples, %d with sums", seed, p.SampleCount(), q.SampleCount())
		}
		if p.Quality() != q.Quality() || !reflect.DeepEqual(p.EventSamples(), q.EventSamples()) || p.FirstEvent() != q.FirstEvent() {
			t.Fatalf("seed %d: %+v and %v; with sums %+v and %v", seed, p.Quality(), p.EventSamples(), q.Quality(), q.EventSamples())
		}
		for event := range p.Events {
			f := Filter{Event: event}
			a, b := p.Select(f), q.Select(f)
			if a.All != b.All || a.Chosen != b.Chosen || p.Sampled(event) != q.Sampled(event) ||
				!reflect.DeepEqual(a.List(), b.List()) || !reflect.DeepEqual(a.ByThread(), b.ByThread()) ||
				!reflect.DeepEqual(a.ByThread(), p.ByThread(f)) || !reflect.DeepEqual(b.ByThread(), q.ByThread(f)) ||
				!reflect.DeepEqual(a.ByState(), b.ByState()) || !reflect.DeepEqual(a.Calls(), b.Calls()) {
				t.Fatalf("seed %d, event %d: %v of %v; with sums %v of %v", seed, event, a.Chosen, a.All, b.Chosen, b.All)
			}
		}
	}
}

// Sums of any numbers are read back, and take few bytes.
func TestSums(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	type key struct{ at, kind uint64 }
	type value struct{ n, weight uint64 }
	want := map[key]value{}
	var u sums
	for range 5 {
		var more []sum
		for range 20_000 {
			s := sumOf(&Sample{Weight: r.Uint64() >> r.IntN(64), Node: r.Uint32() >> r.IntN(32), Thread: r.Uint32() >> r.IntN(32),
				Event: uint16(r.Uint32() >> (16 + r.IntN(16))), Syscall: uint16(r.Uint32() >> (16 + r.IntN(16))),
				State: State(r.IntN(256)), End: walk.End(r.IntN(256)), Flags: SampleFlags(r.IntN(256))})
			more = append(more, s)
			v := want[key{s.at, s.kind}]
			want[key{s.at, s.kind}] = value{v.n + 1, v.weight + s.weight}
		}
		u.add(more)
	}
	if u.samples != 100_000 {
		t.Errorf("%d samples, of 100000", u.samples)
	}
	got := map[key]value{}
	var before sum
	u.each(func(s sum) {
		if before.n > 0 && before.compare(&s, false) >= 0 {
			t.Fatalf("%+v comes after %+v", s, before)
		}
		before = s
		got[key{s.at, s.kind}] = value{s.n, s.weight}
	})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d sums came back, of %d", len(got), len(want))
	}
}
