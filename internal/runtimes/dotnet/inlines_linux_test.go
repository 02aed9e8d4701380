package dotnet_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestInlines launches a program whose methods are inlined, with the setting that makes the runtime record
// that: they are in the stacks, with their lines, and the time of each is its own.
func TestInlines(t *testing.T) {
	for _, major := range fixture.DotNets {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			tooLittle := fixture.Watch(t)
			cmd := fixture.DotNetCommand(t, major, fixture.CSharp(t, major, "testdata/Inlines.cs"), "2000")
			p := recorded(t, record.Options{Command: cmd.Args, Hz: 999, Events: []string{"cpu"}, DotNetInlines: true})
			if !slices.ContainsFunc(p.Meta.Notes, func(n string) bool { return strings.Contains(n, "DOTNET_RichDebugInfo=1") }) {
				t.Errorf("the recording does not say what was set: %q", p.Meta.Notes)
			}
			of := map[string]float64{}
			optimized := 0.0
			for _, s := range p.Samples {
				stack := managed(p, s.Node)
				at := slices.Index(stack, "Program.Outer")
				if at < 0 {
					continue
				}
				f := &p.Frames[p.Nodes[s.Node].Frame]
				of[strings.Join(stack[at+1:], " ")]++
				if f.Kind == walk.KindInlined {
					optimized++
					if fn := &p.Funcs[f.Func]; !strings.HasSuffix(fn.File, "Inlines.cs") || f.Line == 0 {
						t.Fatalf("%s is in %q, line %d", fn.Name, fn.File, f.Line)
					}
				}
			}
			t.Logf("%v, %v in inlined methods; %+v", of, optimized, p.Quality())
			if optimized < 150 {
				tooLittle("%v samples in inlined methods", optimized)
				return
			}
			short, long := of["Program.Short"], of["Program.Middle Program.Long"]
			for stack, n := range of {
				// Outer has its loop, and code that is not optimized yet calls the others: some 8 % together. By
				// chance it may be three standard deviations more.
				if n > 0.1*optimized+3*math.Sqrt(0.1*optimized) && stack != "Program.Short" && stack != "Program.Middle Program.Long" {
					t.Errorf("%v samples of Outer are in %q", n, stack)
				}
			}
			// Eight steps and 24; by chance it may be three standard deviations off.
			if share := short / (short + long); math.Abs(share-0.25) > 0.04+3*math.Sqrt(0.25*0.75/(short+long)) {
				t.Errorf("Short has %.3f of the time, should be 0.25: %v", share, of)
			}
		})
	}
}
