package record

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// A server that takes each request on a virtual thread, and gives a part of it to another,
// is recorded from its launch on: whatever computes below the frames where a request waits has
// those frames, in one run, below the method that took the request.
func TestVirtualServer(t *testing.T) {
	majors := fixture.JDKs(t, 21)
	if !fixture.Full(t) {
		majors = []int{25}
	}
	for _, major := range majors {
		t.Run(fmt.Sprintf("jdk%d", major), func(t *testing.T) {
			classes := filepath.Join(t.TempDir(), "classes")
			if err := fixture.Compile(fixture.JDKTool(t, major, "javac"), "-d", classes, filepath.Join("testdata", "Served.java")); err != nil {
				t.Fatal(err)
			}
			r := run(t, Options{Command: []string{fixture.JDKTool(t, major, "java"), "-cp", classes, "Served", "4"}, Hz: 997})
			p := r.Profile
			inside, complete := 0, 0
			wrong := map[string]int{}
			for i := range p.Samples {
				s := &p.Samples[i]
				names := namesOf(p, s.Node) // the innermost first
				first := slices.IndexFunc(names, func(n string) bool { return n == "Served.down" })
				if first < 0 {
					continue
				}
				inside++
				if c := profile.CertaintyOf(s.End, s.Flags); c != profile.CertaintyComplete && c != profile.CertaintyStitched {
					continue
				}
				complete++
				last := first
				for last+1 < len(names) && names[last+1] == "Served.down" {
					last++
				}
				rest := names[last+1:]
				depth := last - first + 1
				switch {
				case depth > 61, len(rest) == 0, rest[0] != "Served.handle" && rest[0] != "Served.part",
					slices.Contains(rest, "Served.down"), !slices.Contains(rest, "java.lang.VirtualThread.run"):
					wrong[fmt.Sprintf("%q, %d times down, %q, end %v", names[:first], depth, rest, s.End)]++
				}
			}
			t.Logf("%d samples below a request, %d complete, %d impossible", inside, complete, len(wrong))
			for stack, n := range wrong {
				t.Errorf("%d times a complete stack that cannot be: %s", n, stack)
			}
			if inside < 200 {
				t.Skipf("%d samples below a request: the machine was too busy", inside)
			}
			if complete*1000 < inside*985 {
				t.Errorf("%d of %d stacks below a request are complete, want 98.5 %%", complete, inside)
			}
		})
	}
}
