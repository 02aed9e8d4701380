package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/attribution"
	"github.com/candid-profiler/candid/internal/profile"
)

// TestLongestWaits compares the waits that the page names with those of reports.
func TestLongestWaits(t *testing.T) {
	r := busy(t, 4000, 60_000)
	r.p.Events[0].Unit = "nanoseconds"
	for i := range r.p.Threads {
		r.p.Threads[i].Kind = []string{"java", "gc", "java", "compiler"}[i%4]
	}
	named := 0
	for _, c := range questions(r) {
		q, err := r.query(c.ask)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.shapeFor(q.rewrite)
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.longestWaits(context.Background(), &q, s)
		if err != nil {
			t.Fatal(err)
		}
		text := func(list []attribution.Wait) (out []string) {
			for _, w := range list {
				out = append(out, fmt.Sprintf("%v %q of %q: %v", w.State, w.Name, w.Module, w.Count))
			}
			return out
		}
		got, want := text(list), text(attribution.WaitsOf(r.p.Select(c.filter)))
		named += len(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d waits, want %d: %.5q, want %.5q", c.name, len(got), len(want), got, want)
		}
		if !slices.IsSortedFunc(list, func(a, b attribution.Wait) int { return cmp.Compare(b.Weight, a.Weight) }) {
			t.Errorf("%s: not the longest first", c.name)
		}
	}
	if named == 0 {
		t.Error("there are no waits: it tests nothing")
	}
	// If a recording mostly runs, nobody is named.
	q := Query{States: profile.StateSet(0).With(profile.StateRunning)}
	if list, err := r.longestWaits(context.Background(), &q, r.base); err != nil || list != nil {
		t.Errorf("%v, %v", list, err)
	}
}
