package view

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
)

// Totals are the same as if each sample is added to all places on its path, in memory that is
// proportional to the number of places in which samples end.
func TestTotals(t *testing.T) {
	r := busy(t, 1000, 5000)
	some := 0
	for _, c := range questions(r) {
		q, err := r.query(c.ask)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.shapeFor(q.rewrite)
		if err != nil {
			t.Fatal(err)
		}
		counts, err := r.Count(context.Background(), &q)
		if err != nil {
			t.Fatal(err)
		}
		w := r.ways(s)
		self, total := make([]profile.Count, len(w.end)), make([]profile.Count, len(w.end))
		for _, c := range counts.Cells {
			self[c.Place].Add(c.Count)
			for at := c.Place; ; at = w.parent[at] {
				if total[at].Add(c.Count); at == 0 {
					break
				}
			}
			some++
		}
		err = r.totalled(context.Background(), &q, s, func(x *placeSums) error {
			for i := range uint32(len(w.end)) {
				if got := (profile.Count{Samples: uint64(x.count(i)), Weight: x.self(i)}); got != self[i] {
					t.Fatalf("%s: in place %d ended %+v, want %+v", c.name, i, got, self[i])
				}
				if got := (profile.Count{Samples: uint64(x.samples(i)), Weight: x.total(i)}); got != total[i] {
					t.Fatalf("%s: place %d has %+v, want %+v", c.name, i, got, total[i])
				}
			}
			if len(x.weights) != len(w.ends)+1 || len(w.ends) > len(r.cols.ends) {
				t.Errorf("%s: %d totals, samples end in %d of %d places", c.name, len(x.weights), len(r.cols.ends), len(w.end))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if some == 0 {
		t.Error("nothing was chosen")
	}
}

func TestRanks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		var places []uint32
		for i := range uint32(n) {
			if random.IntN(4) == 0 {
				places = append(places, i)
			}
		}
		k := newRanks(places, n)
		for i := range uint32(n + 1) {
			if want, _ := slices.BinarySearch(places, i); k.of(i) != uint32(want) {
				t.Fatalf("%d of %d lie before %d, it says %d", want, n, i, k.of(i))
			}
		}
	}
}
