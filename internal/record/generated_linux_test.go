package record

import (
	"runtime"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// namesOf are the functions of a stack, innermost first.
func namesOf(p *profile.Profile, node uint32) (names []string) {
	for ; node != profile.RootNode; node = p.Nodes[node].Parent {
		names = append(names, p.Funcs[p.Frames[p.Nodes[node].Frame].Func].Name)
	}
	return names
}

// A stack that passes through code that no file holds and no runtime claims is never
// called complete, however much that code looks like a compiler's: of the trap's frame the
// code itself says that a function calls it which nobody ever called.
func TestGeneratedCodeIsNotComplete(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the program generates x86-64 code")
	}
	program := compile(t, "generated", "-fno-omit-frame-pointer")
	tooLittle := fixture.Watch(t)
	r := run(t, Options{Command: []string{program, "1.5"}})
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
	for _, name := range []string{"with-fp", "without-fp", "trap"} {
		c := sums[name]
		t.Logf("%s: %+v", name, c)
		if c.all < 20 {
			tooLittle("%d samples of %s", c.all, name)
			continue
		}
		// What is guessed is right where the code is as compilers make it.
		if name != "trap" && c.true < c.all*95/100 {
			t.Errorf("of %d stacks of %s the caller of the generated code is found in %d", c.all, name, c.true)
		}
	}
	if sums["trap"].invented == 0 {
		t.Error("the trap catches nothing any more: another is needed")
	}
}
