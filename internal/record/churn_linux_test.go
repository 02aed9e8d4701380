package record

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// While classes are unloaded and others take the place of their methods and code many times a
// second, a stack that is marked complete names every method, and the right ones: the two kinds of
// class that come and go each have a method that only its own run calls.
func TestChurnIsTold(t *testing.T) {
	for _, major := range fixture.JDKs(t, 8) {
		t.Run(fmt.Sprintf("jdk%d", major), func(t *testing.T) {
			classes := fixture.Classes(t, 8, filepath.Join("..", "hotspot", "testdata", "Churn.java"))
			tooLittle := fixture.Watch(t)
			r := run(t, Options{
				Command:    []string{fixture.JDKTool(t, major, "java"), "-XX:+UseSerialGC", "-Xmx32m", "-XX:ReservedCodeCacheSize=64m", "-cp", classes, "Churn"},
				NoJVMFlags: true, Duration: 3 * time.Second,
			})
			p := r.Profile
			inside, told := 0, 0
			callers := map[string]string{"Churn$Even.twice": "Churn$Even.run", "Churn$Odd.thrice": "Churn$Odd.run", "Churn$Even.run": "Churn.main", "Churn$Odd.run": "Churn.main"}
			for i := range p.Samples {
				s := &p.Samples[i]
				names := namesOf(p, s.Node)
				if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "Churn$") || strings.HasPrefix(n, "[") }) {
					continue
				}
				inside++
				if c := profile.CertaintyOf(s.End, s.Flags); c != profile.CertaintyComplete && c != profile.CertaintyStitched {
					told++
					continue
				}
				for node := s.Node; node != profile.RootNode; node = p.Nodes[node].Parent {
					f := &p.Frames[p.Nodes[node].Frame]
					fn := &p.Funcs[f.Func]
					if fn.NoName && profile.ManagedFrame(f.Kind) || f.Kind == walk.KindUnknown && node != s.Node {
						t.Fatalf("a complete stack has a frame %q (%s): %q", fn.Name, profile.KindName(f.Kind), names)
					}
					want, ok := callers[fn.Name]
					if !ok {
						continue
					}
					caller := ""
					if up := p.Nodes[node].Parent; up != profile.RootNode {
						caller = p.Funcs[p.Frames[p.Nodes[up].Frame].Func].Name
					}
					if caller != want {
						t.Errorf("a complete stack has %s (%s) called by %s: %q", fn.Name, profile.KindName(f.Kind), caller, names)
					}
				}
			}
			t.Logf("%d of %d stacks in classes that come and go are said to be less than complete", told, inside)
			if inside < 50 {
				tooLittle("%d samples in classes that come and go", inside)
			}
		})
	}
}
