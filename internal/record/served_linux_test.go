package record

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// served is a server that takes each request on a virtual thread.
type served struct {
	major int
	class string
	app   string // the app whose jars it needs, "" for none
}

// TestVirtualServer records servers that take each request on a virtual thread, which passes a part
// of it to another, from their launch on: whatever computes below the frames where a request waits
// has those frames, in one run, below the method that took the request.
func TestVirtualServer(t *testing.T) {
	servers := []served{{25, "TomcatServed", "tomcat"}, {27, "JettyServed", "jetty"}}
	seconds := "4"
	if fixture.Full(t) {
		servers, seconds = nil, "15"
		for _, major := range fixture.JDKs(t, 21) {
			servers = append(servers, served{major, "Served", ""}, served{major, "TomcatServed", "tomcat"}, served{major, "JettyServed", "jetty"})
		}
	}
	for _, s := range servers {
		t.Run(fmt.Sprintf("%s on %d", s.class, s.major), func(t *testing.T) {
			classes := filepath.Join(t.TempDir(), "classes")
			path := classes
			args := []string{"-nowarn", "-d", classes, filepath.Join("testdata", "Served.java")}
			if s.app != "" {
				path += string(filepath.ListSeparator) + fixture.Jars(t, s.app)
				args = append(args, "-cp", path, filepath.Join("testdata", s.class+".java"))
			}
			if err := fixture.Compile(fixture.JDKTool(t, s.major, "javac"), args...); err != nil {
				t.Fatal(err)
			}
			r := run(t, Options{Command: []string{fixture.JDKTool(t, s.major, "java"), "-cp", path, s.class, seconds}, Hz: 2999})
			judgeServed(t, r.Profile)
		})
	}
}

// judgeServed checks all samples of a request.
func judgeServed(t *testing.T, p *profile.Profile) {
	t.Helper()
	inside, complete := 0, 0
	wrong, cut := map[string]int{}, map[string]int{}
	for i := range p.Samples {
		s := &p.Samples[i]
		names := namesOf(p, s.Node) // innermost first
		if !slices.Contains(names, "Served.down") {
			continue
		}
		inside++
		if c := profile.CertaintyOf(s.End, s.Flags); c != profile.CertaintyComplete && c != profile.CertaintyStitched {
			cut[fmt.Sprintf("%v %v: %q", s.End, s.Flags, names[:min(len(names), 5)])]++
			continue
		}
		complete++
		if why := servedWrongly(names); why != "" {
			wrong[fmt.Sprintf("%s: %q, end %v", why, names, s.End)]++
		}
	}
	t.Logf("%d samples, %d below a request, %d complete, %d impossible", len(p.Samples), inside, complete, len(wrong))
	for stack, n := range wrong {
		t.Errorf("%d times a complete stack that cannot be: %s", n, stack)
	}
	if inside < 100 {
		fixture.NotPermitted(t, "%d samples below a request: the machine was too busy", inside)
	}
	if (inside-complete)*1000 > max(inside*15, 2000) {
		t.Errorf("%d of %d stacks below a request are complete, want 98.5 %%; the others: %v", complete, inside, cut)
	}
}

// servedWrongly returns what is wrong with a stack that passes through Served.down, "" if nothing
// is.
func servedWrongly(names []string) string {
	first := slices.Index(names, "Served.down")
	last := first
	for last+1 < len(names) && names[last+1] == "Served.down" {
		last++
	}
	rest := names[last+1:]
	switch depth := last - first + 1; {
	case depth > 61:
		return fmt.Sprintf("down %d times", depth)
	case len(rest) == 0 || rest[0] != "Served.request" && rest[0] != "Served.part":
		return "nobody asked for it"
	case slices.Contains(rest, "Served.down"):
		return "down twice"
	case slices.Contains(rest[1:], rest[0]):
		return rest[0] + " twice"
	}
	// The method that takes requests calls the methods that answer them, once each, on a thread.
	run := 0
	for _, n := range rest {
		if n == "java.lang.VirtualThread.run" {
			run++
		}
	}
	if run != 1 {
		return fmt.Sprintf("below VirtualThread.run %d times", run)
	}
	return ""
}
