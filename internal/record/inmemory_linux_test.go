package record

import (
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// A program that is run from a memfd, which has no path, is walked by its tables and named by its
// symbols.
func TestProgramInMemory(t *testing.T) {
	program := compile(t, "inmemory", "-fomit-frame-pointer")
	tooLittle := fixture.Watch(t)
	p := run(t, Options{Command: []string{program, "0.5"}}).Profile
	all, right := 0, 0
	for i := range p.Samples {
		s := &p.Samples[i]
		names := namesOf(p, s.Node)
		at := slices.Index(names, "computes")
		if at < 0 {
			continue
		}
		all++
		if c := profile.CertaintyOf(s.End, s.Flags); c == profile.CertaintyComplete && slices.Equal(names[at:min(at+3, len(names))], []string{"computes", "calls", "main"}) {
			right++
		} else {
			t.Logf("%s: %q", c, names)
		}
	}
	t.Logf("%d of %d", right, all)
	switch {
	case all < 20 && len(p.Samples) < 50:
		tooLittle("%d samples, %d of them of the program's function", len(p.Samples), all)
	case all < 20:
		t.Errorf("%d of %d samples are of the program's function", all, len(p.Samples))
	case right < all:
		t.Errorf("%d of %d stacks are right", right, all)
	}
}
