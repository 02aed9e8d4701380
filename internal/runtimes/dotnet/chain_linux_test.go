package dotnet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/walk"
)

// chain are the methods of testdata/Chain.cs, outermost first, as they call each other.
var chain = []string{
	"Program.Run", "Program.ByStatic", "Derived.ByVirtual", "Derived.ByInterface", "Box<%s>.ByGenericType",
	"Program.ByGenericMethod<int, %s>", "Program.ByDelegate", "Program.Leaf",
}

// configurations are settings of the runtime that make it compile in different ways.
var configurations = []struct {
	name string
	env  []string
	full bool // only in make test-full
	code bool // the oracle steps it in every run: the framework's code that was compiled ahead of time
}{
	{name: "default"},
	{name: "without tiers", env: []string{"DOTNET_TieredCompilation=0"}, full: true, code: true},
	{name: "without ReadyToRun", env: []string{"DOTNET_ReadyToRun=0"}, full: true},
	{name: tier0Only, env: []string{"DOTNET_TC_CallCounting=0", "DOTNET_TC_OnStackReplacement=0"}, full: true},
}

// tier0Only is the configuration in which nothing is compiled again.
const tier0Only = "Tier-0 only"

// dotnet is a major version of .NET, for Linux or for Windows in Wine.
type dotnet struct {
	major   int
	windows bool
}

// dotnets are those that tests run on.
var dotnets = func() (list []dotnet) {
	for _, major := range fixture.DotNets {
		list = append(list, dotnet{major: major})
	}
	for _, major := range fixture.WindowsDotNets {
		list = append(list, dotnet{major, true})
	}
	return list
}()

func (d dotnet) String() string {
	if d.windows {
		return fmt.Sprintf("%d on Windows", d.major)
	}
	return fmt.Sprint(d.major)
}

// compile compiles a program.
func (d dotnet) compile(t *testing.T, source string) string {
	t.Helper()
	if d.windows {
		return fixture.CSharp(t, d.major, "-define:WINDOWS", source)
	}
	return fixture.CSharp(t, d.major, source)
}

// run starts a program.
func (d dotnet) run(t *testing.T, assembly string, env []string, args ...string) *fixture.Program {
	t.Helper()
	command := fixture.DotNetCommand
	if d.windows {
		command = fixture.WindowsDotNetCommand
	}
	cmd := command(t, d.major, assembly, args...)
	cmd.Env = append(cmd.Environ(), env...)
	return fixture.Start(t, cmd)
}

// start starts a program that prints "ready".
func (d dotnet) start(t *testing.T, assembly string, env []string, args ...string) *fixture.Program {
	t.Helper()
	p := d.run(t, assembly, env, args...)
	p.Await("ready")
	return p
}

// recorded records a program.
func recorded(t *testing.T, o record.Options) *profile.Profile {
	t.Helper()
	var log []string
	o.Log = func(s string) { log = append(log, s) }
	res, err := record.Run(context.Background(), o)
	if err != nil {
		t.Fatalf("%v; %q", err, log)
	}
	return res.Profile
}

// managed returns the managed methods of a stack, outermost first.
func managed(p *profile.Profile, node uint32) (list []string) {
	for ; node != profile.RootNode; node = p.Nodes[node].Parent {
		if f := &p.Frames[p.Nodes[node].Frame]; profile.ManagedFrame(f.Kind) {
			list = append(list, p.Funcs[f.Func].Name)
		}
	}
	slices.Reverse(list)
	return list
}

// TestChain records a program whose stack is known: every caller must be in at least 99.9 % of the
// samples.
func TestChain(t *testing.T) {
	for _, on := range dotnets {
		assembly := on.compile(t, "testdata/Chain.cs")
		for _, c := range configurations {
			if c.full && !fixture.Full(t) {
				continue
			}
			t.Run(fmt.Sprintf("%v %s", on, c.name), func(t *testing.T) {
				t.Parallel()
				tooLittle := fixture.Watch(t)
				target := on.start(t, assembly, c.env)
				long := 1500 * time.Millisecond
				if fixture.Full(t) {
					long = 10 * time.Second
				}
				p := recorded(t, record.Options{PIDs: []int{target.PID()}, Duration: long, Hz: 999, Events: []string{"cpu"}})
				checkChain(t, p, tooLittle)
				checkLines(t, p)
				if c.name == tier0Only && on.major > 8 { // 8 does not tell
					checkTier0(t, p)
				}
			})
		}
	}
}

func checkChain(t *testing.T, p *profile.Profile, tooLittle func(string, ...any)) {
	t.Helper()
	in, whole, incomplete := 0, 0, map[string]int{}
	for _, s := range p.Samples {
		stack := managed(p, s.Node)
		at := slices.Index(stack, chain[0])
		if at < 0 {
			// Besides the chain the program only prints, at first.
			if slices.ContainsFunc(stack, func(f string) bool { return slices.Contains(chain[1:], f) }) {
				t.Errorf("a stack without %s: %q", chain[0], stack)
			}
			continue
		}
		in++
		if follows(stack[at:]) && profile.CertaintyOf(s.End, s.Flags) == profile.CertaintyComplete {
			whole++
			continue
		}
		incomplete[fmt.Sprint(profile.CertaintyOf(s.End, s.Flags), stack)]++
	}
	t.Logf("%d samples, %d in the chain, %d of these whole; %+v", len(p.Samples), in, whole, p.Quality())
	if in < 200 {
		tooLittle("%d samples of the chain", in)
		return
	}
	if float64(whole) < 0.999*float64(in) {
		t.Errorf("of %d stacks %d have every caller: %v", in, whole, incomplete)
	}
}

// checkTier0 fails if a method of the chain ran in optimized code.
func checkTier0(t *testing.T, p *profile.Profile) {
	t.Helper()
	for i := range p.Frames {
		f := &p.Frames[i]
		if name := p.Funcs[f.Func].Name; f.Kind != walk.KindTier0 && profile.ManagedFrame(f.Kind) && slices.Contains(chain, name) {
			t.Errorf("%s ran as %s", name, profile.KindName(f.Kind))
		}
	}
}

// lines are the lines of Chain.cs in which the methods of the chain call the next one.
var lines = map[string]int32{"Derived.ByVirtual": 16, "Derived.ByInterface": 18, "Program.ByDelegate": 34, "Program.ByStatic": 42}

// checkLines compares the lines of methods that have only one.
func checkLines(t *testing.T, p *profile.Profile) {
	t.Helper()
	seen := map[string]bool{}
	for i := range p.Frames {
		f := &p.Frames[i]
		fn := &p.Funcs[f.Func]
		want, ok := lines[fn.Name]
		if !ok || !profile.ManagedFrame(f.Kind) {
			continue
		}
		seen[fn.Name] = true
		if f.Line != want || !strings.HasSuffix(fn.File, "Chain.cs") {
			t.Errorf("%s is in %q, line %d; should be line %d of Chain.cs", fn.Name, fn.File, f.Line, want)
		}
	}
	if len(seen) < len(lines) && !t.Skipped() {
		t.Errorf("only %v were seen", seen)
	}
}

// follows reports whether a stack from Run on is the chain, as far as it goes. What the leaf of the
// chain calls may follow.
func follows(stack []string) bool {
	for i, f := range stack {
		if i >= len(chain) {
			break
		}
		want := chain[i]
		if strings.Contains(want, "%s") {
			// Code may be shared by all types that are references.
			if f != fmt.Sprintf(want, "string") && f != fmt.Sprintf(want, "System.__Canon") {
				return called(f)
			}
			continue
		}
		if f != want {
			return called(f)
		}
	}
	return true
}

// called reports whether a method is one that methods of the chain call besides the next one.
func called(f string) bool { return strings.HasPrefix(f, "System.") }
