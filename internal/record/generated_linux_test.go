package record

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// namesOf returns the functions of a stack, innermost first.
func namesOf(p *profile.Profile, node uint32) (names []string) {
	for ; node != profile.RootNode; node = p.Nodes[node].Parent {
		names = append(names, p.Funcs[p.Frames[p.Nodes[node].Frame].Func].Name)
	}
	return names
}

// A stack that passes through code that no file holds and no runtime claims is never marked
// complete, however much that code looks like a compiler's, and whatever memory it is in. For a
// trap's frame the code itself names a caller that never made the call.
func TestGeneratedCodeIsNotComplete(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the program generates x86-64 code")
	}
	program := compile(t, "generated", "-fno-omit-frame-pointer")
	tooLittle := fixture.Watch(t)
	r := run(t, Options{Command: []string{program, "2"}})
	p := r.Profile
	type count struct{ all, true, invented int }
	sums := map[string]count{}
	for i := range p.Samples {
		s := &p.Samples[i]
		names := namesOf(p, s.Node)
		if !slices.Contains(names, "computes") || s.End == walk.EndTruncated {
			continue
		}
		name := p.Threads[s.Thread].Name
		c := sums[name]
		c.all++
		if c := profile.CertaintyOf(s.End, s.Flags); c != profile.CertaintyHeuristic && c != profile.CertaintyBroken {
			t.Fatalf("a stack of %s is called %s: %q", name, c, names)
		}
		if slices.Contains(names, "invented") {
			c.invented++
		}
		if slices.Contains(names, "runs") {
			c.true++
		}
		sums[name] = c
	}
	for _, name := range []string{"with-fp", "without-fp", "trap", "trap-shared", "trap-memfd", "trap-removed", "trap-data", "trap-text"} {
		c := sums[name]
		t.Logf("%s: %+v", name, c)
		if c.all < 20 {
			tooLittle("%d samples of %s", c.all, name)
			continue
		}
		// A guess is right if the code is as compilers make it.
		if trap := strings.HasPrefix(name, "trap"); !trap && c.true < c.all*95/100 {
			t.Errorf("of %d stacks of %s the caller of the generated code is found in %d", c.all, name, c.true)
		} else if trap && c.invented == 0 {
			t.Errorf("%s catches nothing any more: another is needed", name)
		}
	}
}
