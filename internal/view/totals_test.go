package view

import (
	"context"
	"slices"
	"testing"
)

// Of a tree of many places there are only as many totals as are used, and they are right
// each time.
func TestFewTotals(t *testing.T) {
	r := busy(t, 1000, 5000)
	queries := []Query{{}, {From: r.end / 3}, {To: r.end / 2}}
	total := func(q *Query) (out []uint64) {
		t.Helper()
		if err := r.totalled(context.Background(), q, r.base, func(s *placeSums) error {
			out = slices.Clone(s.total)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	var want [][]uint64
	for i := range queries {
		want = append(want, total(&queries[i]))
	}
	if slices.Equal(want[0], want[1]) || slices.Equal(want[1], want[2]) {
		t.Fatal("the queries choose the same")
	}
	before := manyPlaces
	manyPlaces = 1
	defer func() { manyPlaces = before }()
	r.last, r.spareTotals = nil, nil
	for i := range 12 {
		q := (i * 7 / 3) % len(queries)
		if got := total(&queries[q]); !slices.Equal(got, want[q]) {
			t.Fatalf("query %d after others: other totals", q)
		}
		have := len(r.spareTotals)
		for _, k := range r.last {
			if k.totals != nil {
				have++
			}
		}
		if have != 1 {
			t.Fatalf("after %d questions there are %d totals", i+1, have)
		}
	}
	// Two at once do not take each other's.
	if err := r.bothTotalled(context.Background(), &queries[0], &queries[1], r.base, func(after, before *placeSums) error {
		if !slices.Equal(after.total, want[0]) || !slices.Equal(before.total, want[1]) {
			t.Error("of two that are compared the totals are others")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
