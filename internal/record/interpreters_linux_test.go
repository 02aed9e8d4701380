package record

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestUnknownInterpreters records runtimes that candid does not know. Their interpreter is a
// program like others, whose stacks are complete; what they compile at run time is unknown code,
// and a stack through it is not complete. The kind of their threads is unknown.
func TestUnknownInterpreters(t *testing.T) {
	luajit := fixture.Tool(t, "luajit")
	lua := filepath.Join("testdata", "loop.lua")
	// The python3 that is found may be a script that starts the interpreter.
	python, err := exec.Command(fixture.Tool(t, "python3"), "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		command   []string
		generated bool
	}{
		{"CPython", []string{strings.TrimSpace(string(python)), filepath.Join("testdata", "loop.py"), "0.5"}, false},
		{"LuaJIT's interpreter", []string{luajit, "-joff", lua, "0.5"}, false},
		{"LuaJIT", []string{luajit, "-jon", lua, "0.5"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.generated && runtime.GOARCH != "amd64" {
				t.Skip("known of x86-64 only: it generates code for this loop")
			}
			tooLittle := fixture.Watch(t)
			p := run(t, Options{Command: c.command}).Profile
			all, complete, unknown := 0, 0, 0
			for i := range p.Samples {
				s := &p.Samples[i]
				if kind := p.Threads[s.Thread].Kind; kind != "" {
					t.Fatalf("a thread is said to be for %q", kind)
				}
				through := false
				for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
					through = through || p.Frames[p.Nodes[n].Frame].Kind == walk.KindUnknown
				}
				certainty := profile.CertaintyOf(s.End, s.Flags)
				if through && certainty != profile.CertaintyHeuristic && certainty != profile.CertaintyBroken && certainty != profile.CertaintyTruncated {
					t.Fatalf("a stack through generated code is called %s: %q", certainty, namesOf(p, s.Node))
				}
				if all++; through {
					unknown++
				} else if certainty == profile.CertaintyComplete {
					complete++
				} else {
					t.Logf("%s: %q", certainty, namesOf(p, s.Node))
				}
			}
			t.Logf("%d samples, %d through generated code, %d of the others complete", all, unknown, complete)
			if all < 50 {
				tooLittle("%d samples", all)
				return
			}
			if complete < (all-unknown)*99/100 {
				t.Errorf("of %d stacks of nothing but files' code %d are complete", all-unknown, complete)
			}
			if c.generated && unknown < all/2 {
				t.Errorf("%d samples of %d are in generated code", unknown, all)
			}
		})
	}
}
