package dotnet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
)

// TestLoads records programs that throw exceptions, make system calls, allocate, call native code and
// are called back, or run asynchronous methods, all the time: at least 99.9 % of the stacks must be
// complete.
func TestLoads(t *testing.T) {
	for _, major := range fixture.DotNets {
		assembly := fixture.CSharp(t, major, "testdata/Loads.cs")
		for _, load := range []string{"exceptions", "syscalls", "allocation", "native", "async"} {
			if major == 10 && load == "async" {
				continue // its framework was trimmed of what the compiler needs for it
			}
			collectors := [][]string{nil}
			if load == "allocation" {
				collectors = append(collectors, []string{"DOTNET_gcServer=1"}, []string{"DOTNET_gcConcurrent=0"})
			}
			for n, env := range collectors {
				if (n > 0 || !strings.Contains(briefly[major], load)) && !fixture.Full(t) {
					continue
				}
				t.Run(fmt.Sprintf("%d %s %v", major, load, env), func(t *testing.T) {
					t.Parallel()
					tooLittle := fixture.Watch(t)
					target := start(t, major, assembly, env, load)
					long := 2 * time.Second
					if fixture.Full(t) {
						long = 10 * time.Second
						if major == 10 {
							long = 30 * time.Second
						}
					}
					p := recorded(t, record.Options{PIDs: []int{target.PID()}, Duration: long, Hz: 999, Events: []string{"cpu"}})
					q := p.Quality()
					other := map[string]int{}
					for _, s := range p.Samples {
						if c := profile.CertaintyOf(s.End, s.Flags); c != profile.CertaintyComplete {
							other[fmt.Sprint(c, all(p, s.Node))]++
						}
					}
					t.Logf("%+v", q)
					if q.Samples < 200 {
						tooLittle("%d samples", q.Samples)
						return
					}
					if float64(q.Complete) < 0.999*float64(q.Samples) {
						t.Errorf("%d of %d stacks are complete; %v", q.Complete, q.Samples, other)
					}
				})
			}
		}
	}
}

// briefly are the loads that make test runs.
var briefly = map[int]string{8: "exceptions", 9: "native async", 10: "allocation"}

// all returns the innermost functions of a stack, with their kinds.
func all(p *profile.Profile, node uint32) (list []string) {
	for ; node != profile.RootNode && len(list) < 40; node = p.Nodes[node].Parent {
		f := &p.Frames[p.Nodes[node].Frame]
		list = append(list, fmt.Sprintf("%s[%s %d]", p.Funcs[f.Func].Name, profile.KindName(f.Kind), f.Prov))
	}
	return list
}
