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
	for _, on := range dotnets {
		assembly := on.compile(t, "testdata/Loads.cs")
		for _, load := range []string{"exceptions", "syscalls", "allocation", "native", "async"} {
			if on.major == 10 && load == "async" {
				continue // its framework was trimmed of what the compiler needs for it
			}
			collectors := [][]string{nil}
			if load == "allocation" {
				collectors = append(collectors, []string{"DOTNET_gcServer=1"}, []string{"DOTNET_gcConcurrent=0"})
			}
			for n, env := range collectors {
				if (n > 0 || !strings.Contains(briefly[on], load)) && !fixture.Full(t) {
					continue
				}
				t.Run(fmt.Sprintf("%v %s %v", on, load, env), func(t *testing.T) {
					t.Parallel()
					tooLittle := fixture.Watch(t)
					target := on.start(t, assembly, env, load)
					long := 2 * time.Second
					if fixture.Full(t) {
						long = 10 * time.Second
						if on.major == 10 {
							long = 30 * time.Second
						}
					}
					// One stack of some hundred says nothing of 99.9 %: then more are recorded.
					samples, complete, other := uint64(0), uint64(0), map[string]int{}
					for range 6 {
						p := recorded(t, record.Options{PIDs: []int{target.PID()}, Duration: long, Hz: 999, Events: []string{"cpu"}})
						q := p.Quality()
						for _, s := range p.Samples {
							if c := profile.CertaintyOf(s.End, s.Flags); c != profile.CertaintyComplete {
								other[fmt.Sprint(c, all(p, s.Node))]++
							}
						}
						t.Logf("%+v", q)
						samples, complete = samples+q.Samples, complete+q.Complete
						if complete*1000 >= samples*999 || samples-complete > 3 {
							break
						}
					}
					if samples < 200 {
						tooLittle("%d samples", samples)
						return
					}
					if complete*1000 < samples*999 {
						t.Errorf("%d of %d stacks are complete; %v", complete, samples, other)
					}
				})
			}
		}
	}
}

// briefly are the loads that make test runs.
var briefly = map[dotnet]string{{major: 8}: "exceptions", {major: 9}: "native async", {major: 10}: "allocation"}

// all returns the innermost functions of a stack, with their kinds.
func all(p *profile.Profile, node uint32) (list []string) {
	for ; node != profile.RootNode && len(list) < 40; node = p.Nodes[node].Parent {
		f := &p.Frames[p.Nodes[node].Frame]
		list = append(list, fmt.Sprintf("%s[%s %d]", p.Funcs[f.Func].Name, profile.KindName(f.Kind), f.Prov))
	}
	return list
}
