package record

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// javaScript runs a program in node and records it.
func javaScript(t *testing.T, source string, flags ...string) *profile.Profile {
	t.Helper()
	node := fixture.Tool(t, "node")
	file := filepath.Join(t.TempDir(), "program.js")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	target := fixture.Start(t, exec.Command(node, append(flags, file)...))
	target.Await("ready")
	return run(t, Options{PIDs: []int{target.PID()}, Duration: 3 * time.Second}).Profile
}

// functionsOf returns the JavaScript functions of a stack, outermost first; "?" for those that are
// unknown.
func functionsOf(p *profile.Profile, node uint32) (list []string) {
	for ; node != profile.RootNode; node = p.Nodes[node].Parent {
		f := &p.Frames[p.Nodes[node].Frame]
		if fn := &p.Funcs[f.Func]; profile.ManagedFrame(f.Kind) && fn.NoName {
			list = append(list, "?")
		} else if profile.ManagedFrame(f.Kind) {
			list = append(list, fn.Name)
		}
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

// TestJavaScriptChain records a program whose stack is known: below top there are 31 frames of
// down, then leaf. No stack that is marked certain may lack one, however V8 ran the program, and
// nearly all are certain.
func TestJavaScriptChain(t *testing.T) {
	const program = `
function leaf(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i + s) % 3; return s; }
function down(n) { return n > 0 ? down(n - 1) + 1 : leaf(2000); }
function top() { return down(30); }
console.log("ready");
for (let n = 0; ; n += top());
`
	for name, flags := range map[string][]string{
		"optimized": {"--no-turbo-inlining"}, "interpreted": {"--no-opt", "--no-sparkplug"}, "baseline": {"--no-opt", "--always-sparkplug"}, "without compilers": {"--jitless"},
	} {
		t.Run(name, func(t *testing.T) {
			tooLittle := fixture.Watch(t)
			p := javaScript(t, program, flags...)
			certain, deep, wrong := 0, 0, 0
			for _, s := range p.Samples {
				if c := profile.CertaintyOf(s.End, s.Flags); c != profile.CertaintyComplete && c != profile.CertaintyUnnamed {
					continue
				}
				certain++
				stack := functionsOf(p, s.Node)
				at := len(stack)
				for i, f := range stack {
					if f == "top" {
						at = i
						break
					}
				}
				downs := 0
				for at+1+downs < len(stack) && stack[at+1+downs] == "down" {
					downs++
				}
				ends := stack[min(at+1+downs, len(stack)):]
				switch {
				case len(ends) == 1 && ends[0] == "leaf" && downs == 31:
					deep++
				case len(ends) > 1, len(ends) == 1 && ends[0] != "?", downs > 31, at == len(stack) && strings.Contains(strings.Join(stack, " "), "down"):
					if wrong++; wrong < 4 {
						t.Errorf("a stack that is called %v has %q", profile.CertaintyOf(s.End, s.Flags), stack)
					}
				}
			}
			n := len(p.Samples)
			t.Logf("of %d samples %d are certain, %d of these in leaf below 31 frames of down, %d wrong; %+v", n, certain, deep, wrong, p.Quality())
			if n < 50 {
				tooLittle("%d samples", n)
				return
			}
			if certain < n*95/100 || deep < n*80/100 {
				t.Errorf("of %d samples %d are certain, and %d in leaf below 31 frames of down", n, certain, deep)
			}
		})
	}
}

// TestJavaScriptMoves records functions that the collector moves all the time: the three on a stack
// are of one generation, or they are reported as unknown.
func TestJavaScriptMoves(t *testing.T) {
	tooLittle := fixture.Watch(t)
	p := javaScript(t, `
let kept = [];
function make(i) {
	return new Function("kept", "return (function outer_" + i + "(n) {" +
		"return (function middle_" + i + "(n) { return (function inner_" + i + "(n) {" +
		"let s = 0; for (let j = 0; j < n; j++) { s += j % 7; kept.push({ j }); if (kept.length > 1000) kept = []; } return s; })(n) + 1; })(n) + 1; })")(kept);
}
console.log("ready");
for (let i = 0; ; i++) { const f = make(i % 997); for (let k = 0; k < 20; k++) f(3000); if (i % 5 == 0) gc(); }
`, "--expose-gc", "--compact-on-every-full-gc", "--max-semi-space-size=1")
	generation := regexp.MustCompile(`^(outer|middle|inner)_(\d+)$`)
	named := 0
	for _, s := range p.Samples {
		of := ""
		for _, f := range functionsOf(p, s.Node) {
			m := generation.FindStringSubmatch(f)
			if m == nil {
				continue
			}
			named++
			if of != "" && of != m[2] {
				t.Errorf("a stack has functions of two generations: %q", functionsOf(p, s.Node))
				break
			}
			of = m[2]
		}
	}
	if t.Logf("%d samples, %d frames of known generation; %+v", len(p.Samples), named, p.Quality()); len(p.Samples) < 50 {
		tooLittle("%d samples", len(p.Samples))
		return
	}
	// Most functions have moved when their names are read, and are not named then.
	if named < 50 {
		tooLittle("of %d samples %d frames have a name", len(p.Samples), named)
	}
}

// TestUnknownRuntimes records a program whose code is generated by a runtime that candid does not
// know: node, with the symbols that V8 publishes about itself renamed. However good its frames
// look, stacks through them are not marked complete.
func TestUnknownRuntimes(t *testing.T) {
	tooLittle := fixture.Watch(t)
	program, err := os.ReadFile(fixture.Tool(t, "node"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"v8dbg_", "v8_Default_embedded_blob_"} {
		program = bytes.ReplaceAll(program, []byte("\x00"+name), []byte("\x00x"+name[1:]))
	}
	dir := t.TempDir()
	node, file := filepath.Join(dir, "node"), filepath.Join(dir, "program.js")
	if err := os.WriteFile(node, program, 0o700); err != nil {
		t.Fatal(err)
	}
	const source = `function work() { let s = 0; for (let i = 0; i < 5000; i++) s += Math.sqrt(i); return s; } console.log("ready"); for (;;) work();`
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	target := fixture.Start(t, exec.Command(node, file))
	target.Await("ready")
	p := run(t, Options{PIDs: []int{target.PID()}, Duration: 2 * time.Second}).Profile
	through := 0
	for _, s := range p.Samples {
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			if p.Frames[p.Nodes[n].Frame].Kind != walk.KindUnknown {
				continue
			}
			through++
			if c := profile.CertaintyOf(s.End, s.Flags); c != profile.CertaintyHeuristic && c != profile.CertaintyBroken && c != profile.CertaintyTruncated {
				t.Fatalf("a stack through code that nobody knows is called %v", c)
			}
			break
		}
	}
	if n := len(p.Samples); n < 20 {
		tooLittle("%d samples", n)
	} else if through < n/2 {
		t.Errorf("of %d samples %d go through generated code", n, through)
	}
}
