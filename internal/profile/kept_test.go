package profile

import (
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"
)

// kept returns what a Builder has of some samples after it excluded others.
func kept(seed uint64, n int, f Filter, k Keep, tentative bool) (*Profile, uint64) {
	whole, b := NewBuilder(), NewBuilder()
	b.nodes = whole.nodes
	b.LeaveOut(f)
	b.Keep(k)
	if tentative {
		b.Tentative()
	}
	randomly(rand.New(rand.NewPCG(seed, 11)), n, 1<<62, whole, b)
	if b.Samples()+int(b.LeftOut()) != n {
		return nil, 0
	}
	return b.Finish(), b.LeftOut()
}

// However samples are kept, a filter leaves the same ones, and their sums are the same.
func TestKeep(t *testing.T) {
	const n = 3000
	end := time.Duration(n * 1e6)
	running := StateSet(0).With(StateRunning)
	for seed, f := range []Filter{
		{},
		{From: end / 4, To: end / 2},
		{From: end/3 + 12345},
		{To: end/2 + 1},
		{States: running, From: end / 5},
		{Focus: regexp.MustCompile("[a-e]"), Ignore: regexp.MustCompile("f|g"), To: end / 3},
	} {
		plain, left := kept(uint64(seed), n, f, KeepSamples, false)
		if plain == nil || plain.SampleCount() == 0 || left == 0 != reflect.DeepEqual(f, Filter{}) {
			t.Fatalf("%+v: %d samples are left out", f, left)
		}
		for _, k := range []Keep{KeepPacked, KeepTracks, KeepSums} {
			for _, tentative := range []bool{false, true} {
				p, gone := kept(uint64(seed), n, f, k, tentative)
				if p == nil || gone != left || p.SampleCount() != plain.SampleCount() || p.Check() != nil || p.HasTimes() != plain.HasTimes() {
					t.Fatalf("%+v, %d: %+v", f, k, p)
				}
				if p.Latest() != plain.Latest() || p.FirstEvent() != plain.FirstEvent() || p.Quality() != plain.Quality() {
					t.Errorf("%+v, %d: ends %d, is of %d; want %d and %d", f, k, p.Latest(), p.FirstEvent(), plain.Latest(), plain.FirstEvent())
				}
				if k != KeepSums {
					sameSamples(t, k, p, plain)
				}
				want, got := Cut(Apply(plain, f), f, end), Cut(Apply(p, f), f, end)
				if k != KeepSums {
					sameSamples(t, k, got, want)
				}
				if a, b := Summed(want), Summed(got); a.SampleCount() == 0 || !reflect.DeepEqual(a.sums, b.sums) || len(b.Samples) > 0 || b.packed != nil {
					t.Errorf("%+v, %d: %d samples, summed up %d; want %d", f, k, got.SampleCount(), b.SampleCount(), a.SampleCount())
				}
				one, other := Only(plain, 1), Only(p, 1)
				if a, b := Summed(one), Summed(other); !reflect.DeepEqual(a.sums, b.sums) {
					t.Errorf("%+v, %d: %d samples of the second event, want %d", f, k, b.SampleCount(), a.SampleCount())
				}
			}
		}
	}
}

// sameSamples compares single samples; the tracks of one may be kept apart.
func sameSamples(t *testing.T, k Keep, got, want *Profile) {
	t.Helper()
	list := func(p *Profile) map[Track][]Sample {
		m := map[Track][]Sample{}
		p.Each(func(s *Sample, n uint64) {
			key := Track{s.Thread, s.Event}
			if k == KeepPacked {
				key = Track{}
			}
			m[key] = append(m[key], *s)
		})
		return m
	}
	if a, b := list(got), list(want); !reflect.DeepEqual(a, b) {
		t.Errorf("keeping %d: other samples: %d instead of %d", k, got.SampleCount(), want.SampleCount())
	}
}

// Samples that were added in any order are sorted like a list.
func TestSortByTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b, plain := NewBuilder(), NewBuilder()
	b.Keep(KeepPacked)
	for i := range 600_000 {
		s := Sample{Time: uint64(i/3)*1000 + r.Uint64N(2)*r.Uint64N(1e9)/1000*1000, Weight: uint64(i)}
		b.Add(s)
		plain.Add(s)
	}
	p, q := b.Finish(), plain.Finish()
	p.SortByTime()
	q.SortByTime()
	var got []Sample
	p.Each(func(s *Sample, _ uint64) { got = append(got, *s) })
	if !slices.Equal(got, q.Samples) {
		t.Errorf("%d samples are in another order", len(got))
	}
}

// Sums by weight keep the weight of each sample.
func TestWeighed(t *testing.T) {
	const n = 3000
	weights := func(p *Profile) map[Sample]uint64 {
		m := map[Sample]uint64{}
		p.Each(func(s *Sample, n uint64) {
			one := *s
			if one.Time, one.Weight = 0, s.Weight/n; one.Weight*n != s.Weight {
				t.Fatalf("%d samples weigh %d", n, s.Weight)
			}
			m[one] += n
		})
		return m
	}
	for seed := range uint64(5) {
		plain, _ := kept(seed, n, Filter{}, KeepSamples, false)
		want := weights(plain)
		sums, _ := kept(seed, n, Filter{}, KeepWeights, false)
		for name, p := range map[string]*Profile{"weighed": Weighed(plain), "kept so": Weighed(sums), "of one event": Weighed(Only(sums, 1))} {
			if len(p.Samples) > 0 || p.packed != nil {
				t.Errorf("%s: %d samples are not summed up", name, len(p.Samples))
			}
			all := want
			if name == "of one event" {
				all = weights(Only(plain, 1))
			}
			if got := weights(p); !reflect.DeepEqual(got, all) {
				t.Errorf("%s: %d different samples, want %d", name, len(got), len(all))
			}
			alike := EqualWeights(p)
			for s := range weights(alike) {
				if s.Weight != 1 {
					t.Fatalf("%s: alike, one weighs %d", name, s.Weight)
				}
			}
			if alike.SampleCount() != p.SampleCount() {
				t.Errorf("%s: alike, they are %d instead of %d", name, alike.SampleCount(), p.SampleCount())
			}
		}
		if got := Summed(Weighed(plain)); !reflect.DeepEqual(got.EventWeights(), plain.EventWeights()) {
			t.Errorf("they weigh %v, want %v", got.EventWeights(), plain.EventWeights())
		}
		// Weights that are all changed alike stay apart.
		double := func(s *Sample) { s.Weight *= 2 }
		twice := *plain
		twice.Samples = slices.Clone(plain.Samples)
		twice.Change(double)
		changed := Weighed(plain)
		changed.Change(double)
		if !reflect.DeepEqual(weights(&twice), weights(changed)) {
			t.Error("when they are doubled, they weigh something else")
		}
	}
}
