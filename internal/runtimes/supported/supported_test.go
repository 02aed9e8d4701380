package supported

import (
	"testing"

	"github.com/candid-profiler/candid/internal/runtimes"
)

// Every row has the texts that messages are made of, and a new Finder for each run.
func TestRows(t *testing.T) {
	seen := map[runtimes.Kind]bool{}
	for _, r := range Runtimes {
		if seen[r.Kind] || Of(r.Kind) != r {
			t.Errorf("%v is in the table twice", r.Kind)
		}
		seen[r.Kind] = true
		for _, text := range []string{r.Functions, r.Threads, r.Programs, r.Means} {
			if text == "" {
				t.Errorf("%v lacks a text: %+v", r.Kind, r)
			}
		}
		if a, b := r.Finder(), r.Finder(); a == nil || a == b {
			t.Errorf("%v has one Finder for all", r.Kind)
		}
	}
	if Of(runtimes.Native) != nil {
		t.Error("native code is taken for a runtime")
	}
}
