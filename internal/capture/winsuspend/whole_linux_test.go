package winsuspend_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
)

// wholeStacks fails an attempt unless 99.9 % of a recording's stacks are complete.
func wholeStacks(t *testing.T, path string, least uint64) (wrong string) {
	t.Helper()
	q := quality(t, path)
	switch {
	case q.Samples < least:
		return fmt.Sprintf("%d samples, %d are wanted", q.Samples, least)
	case (q.Complete+q.Stitched)*1000 < q.Samples*999:
		return fmt.Sprintf("%d of %d stacks are complete", q.Complete+q.Stitched, q.Samples)
	}
	return ""
}

// quality reads how certain a recording's stacks are, and logs some of those that are not complete.
func quality(t *testing.T, path string) profile.Quality {
	t.Helper()
	p, err := format.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	q := p.Quality()
	t.Logf("%s: %d samples, %d complete, %d of them stitched, %d heuristic, %d unnamed, %d truncated, %d broken", filepath.Base(path), q.Samples, q.Complete+q.Stitched, q.Stitched, q.Heuristic, q.Unnamed, q.Truncated, q.Broken)
	said := 0
	p.Each(func(s *profile.Sample, n uint64) {
		if c := profile.CertaintyOf(s.End, s.Flags); c != profile.CertaintyComplete && c != profile.CertaintyStitched && said < 10 {
			said++
			var names []string
			for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
				names = append(names, p.Funcs[p.Frames[p.Nodes[n].Frame].Func].Name)
			}
			t.Logf("%d: %v: innermost first %q", n, s.End, names)
		}
	})
	return q
}
