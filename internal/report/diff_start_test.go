package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestDiffFoldsStarts looks for the frames by which threads start in trees of two recordings: they
// are one line, as in reports of one, with their sums, unless they are asked for.
func TestDiffFoldsStarts(t *testing.T) {
	spec, err := filter.Parse(filter.Words{})
	if err != nil {
		t.Fatal(err)
	}
	sides, err := diff.Choose([2]string{"a.jfr", "b.jfr"}, [2]*profile.Profile{profiletest.Java(), profiletest.Java()}, spec)
	if err != nil {
		t.Fatal(err)
	}
	c, err := diff.Compare(sides[0], sides[1], diff.Total)
	if err != nil {
		t.Fatal(err)
	}
	text := func(o DiffOptions) string {
		t.Helper()
		var b bytes.Buffer
		if err := DiffText(&b, c, o); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const folded = "frames by which threads start"
	for _, o := range []DiffOptions{{View: ViewTree}, {View: ViewCallers, Callers: regexp.MustCompile("HashMap.get")}} {
		if got := text(o); strings.Count(got, folded) < 2 || strings.Contains(got, "start_thread") {
			t.Errorf("%s: how threads start is not folded:\n%s", o.View, got)
		}
		o.Unfold = true
		if got := text(o); strings.Contains(got, folded) || !strings.Contains(got, "start_thread") {
			t.Errorf("%s: how threads start is not shown:\n%s", o.View, got)
		}
	}
	// The folded node has the sum of its frames at the root, and what they call is below it.
	pg := &diffPage{page: newPage(&bytes.Buffer{}, Options{}), c: c}
	nodes := c.Calls()
	out, folds := pg.foldStart(nodes)
	var total, below uint64
	for _, child := range out[0].Children {
		total += out[child].Total[1].Weight
		if folds[child] > 0 {
			below = out[child].Self[1].Weight
			for _, n := range out[child].Children {
				below += out[n].Total[1].Weight
			}
			if below != out[child].Total[1].Weight {
				t.Errorf("the fold has %d, what is below it %d", out[child].Total[1].Weight, below)
			}
		}
	}
	if total != nodes[0].Total[1].Weight-nodes[0].Self[1].Weight || below == 0 {
		t.Errorf("the tree has %d of %d, below the fold %d", total, nodes[0].Total[1].Weight, below)
	}
}
