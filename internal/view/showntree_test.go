package view

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"testing"
)

// If a tree has many places, only one rewritten tree is kept at a time, and its answers are as
// before; if it is small, several are.
func TestFewShapes(t *testing.T) {
	r := busy(t, 1000, 5000)
	asks := []url.Values{{"recursion": {"HashMap"}}, {"merge": {"java"}}, {"merge": {"HashMap"}}, {}}
	answer := func(v url.Values) string {
		t.Helper()
		data, err := methodsMessage(context.Background(), r, v)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var want []string
	for _, v := range asks {
		want = append(want, answer(v))
	}
	if want[0] == want[1] || len(r.shapes) != 3 {
		t.Fatalf("%d trees, or all are the same", len(r.shapes))
	}
	before := maxShapePlaces
	maxShapePlaces = 1
	defer func() { maxShapePlaces = before }()
	clear(r.shapes)
	for i := range 12 {
		k := i * 7 / 3 % len(asks)
		if answer(asks[k]) != want[k] {
			t.Fatalf("question %d, the answer to %v is another one", i, asks[k])
		}
		if len(r.shapes) > 1 {
			t.Fatalf("after %d questions %d trees are there", i+1, len(r.shapes))
		}
		for _, m := range r.last { // remembered sums do not keep others either
			if m.totals != nil && m.totals.of != r.base && !slices.Contains(slices.Collect(maps.Values(r.shapes)), m.totals.of) {
				t.Fatalf("after %d questions a tree that is gone is remembered", i+1)
			}
		}
	}
}
