package record

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestNativeImage records the Closure compiler, a Java program that was compiled ahead of time: its
// stacks are complete, and its methods have names and lines.
func TestNativeImage(t *testing.T) {
	var b strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&b, "function f%d(a, b) { var list = []; for (var i = 0; i < a.length; i++) list.push({key: a[i], name: 'n' + i}); return list.concat(f%d(b, i)); }\n", i, max(i-1, 0))
	}
	script := filepath.Join(t.TempDir(), "script.js")
	if err := os.WriteFile(script, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tooLittle := fixture.Watch(t)
	target := fixture.Start(t, exec.Command(fixture.Image(t, "image25"), "-O", "ADVANCED", "-W", "QUIET", "--js", script, "--js_output_file", os.DevNull))
	time.Sleep(time.Second)
	r := run(t, Options{PIDs: []int{target.PID()}, Duration: 3 * time.Second})
	p := r.Profile
	var java, lines, inlined, closure, certain, named uint64
	for i := range p.Samples {
		s := &p.Samples[i]
		if profile.CertaintyOf(s.End, s.Flags) == profile.CertaintyComplete {
			certain++
		}
		if strings.HasPrefix(p.Threads[s.Thread].Name, "main") || strings.HasPrefix(p.Threads[s.Thread].Name, "jscompiler") {
			named++
		}
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := &p.Frames[p.Nodes[n].Frame]
			if f.Kind != walk.KindAOT && f.Kind != walk.KindInlined {
				continue
			}
			java++
			if f.Line > 0 {
				lines++
			}
			if f.Kind == walk.KindInlined {
				inlined++
			}
			if strings.HasPrefix(p.Funcs[f.Func].Name, "com.google.javascript.jscomp.") {
				closure++
			}
		}
	}
	n := uint64(len(p.Samples))
	t.Logf("%d samples, %d complete, %d of named threads; %d frames of Java, %d with lines, %d inlined, %d of the program; %+v", n, certain, named, java, lines, inlined, closure, p.Quality())
	if n < 100 {
		tooLittle("%d samples", n)
		return
	}
	if certain*100 < n*99 {
		t.Errorf("of %d samples only %d are complete", n, certain)
	}
	if java < 10*n || lines*10 < java*9 || inlined == 0 || closure*10 < java {
		t.Errorf("in %d samples %d frames of Java, %d with lines, %d inlined, %d of the program", n, java, lines, inlined, closure)
	}
}
