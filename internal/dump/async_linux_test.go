package dump

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/runtimes"
)

// asyncLimits are what the command has by default.
func asyncLimits() *runtimes.AsyncLimits {
	return &runtimes.AsyncLimits{Time: 5 * time.Second, Bytes: 4 << 30}
}

// asyncLines are those of the tree of Async.cs, by major version: on 10 the methods are the framework's own.
var asyncLines = map[int][]string{
	9: {
		"Program.AllAsync [state 0]",
		"  awaiting System.Threading.Tasks.Task.WhenAllPromise",
		"    awaiting 5× Program.LeafAsync [state 0]",
		"      awaiting System.Threading.Tasks.Task<bool> (promise)",
		"Program.EnterAsync [state 0]",
		"  awaiting System.Threading.SemaphoreSlim.TaskNode",
		"Program.IterateAsync [state 0]",
		"  awaiting Program.ItemsAsync [state 0]",
		"    awaiting System.Threading.Tasks.Task<bool> (promise)",
		"Program.SleepAsync [state 0]",
		"  awaiting System.Threading.Tasks.Task.DelayPromise",
		"Shop.Checkout.PayAsync [state 0]",
		"  awaiting Shop.Cart.SumAsync [state 1]",
		"    awaiting Shop.Db.QueryAsync [state 0]",
		"      awaiting System.Threading.Tasks.Task<int> (promise)",
	},
	10: {
		"System.IO.StreamReader.ReadLineAsyncInternal [state 0]",
		"  awaiting System.IO.StreamReader.ReadBufferAsync [state 0]",
		"    awaiting System.IO.BufferedStream.ReadFromUnderlyingStreamAsync [state 3]",
		"      awaiting System.Threading.Tasks.Task<int> (promise)",
		"System.Threading.Tasks.Task.WhenAllPromise",
		"  awaiting 5× System.Threading.SemaphoreSlim.WaitUntilCountOrTimeoutAsync [state 0]",
		"    awaiting 5× System.Threading.Tasks.Task.CancellationPromise<bool>",
		"      awaiting 5× System.Threading.SemaphoreSlim.TaskNode",
	},
}

// asyncPending are how many methods these are.
var asyncPending = map[int]int{9: 13, 10: 8}

// TestAsync dumps a program whose pending asynchronous methods are known: all are there, and nothing else.
func TestAsync(t *testing.T) {
	for _, major := range []int{9, 10} {
		assembly := fixture.CSharp(t, major, "testdata/Async.cs")
		t.Run(fmt.Sprint(major), func(t *testing.T) { allAsync(t, major, startAsync(t, major, assembly, "")) })
		t.Run(fmt.Sprint(major, " collected"), func(t *testing.T) { collectedAsync(t, major, startAsync(t, major, assembly, "", "allocate")) })
		if major == 9 {
			t.Run("9 bounds", func(t *testing.T) { boundedAsync(t, startAsync(t, 9, assembly, "")) })
			t.Run("8", func(t *testing.T) {
				out := take(t, Options{PIDs: []int{startAsync(t, 8, assembly, "").PID()}, Async: asyncLimits()})
				if out.Async != nil || !strings.Contains(strings.Join(out.Notes, "\n"), "since .NET 9") {
					t.Errorf("%+v, %q", out.Async, out.Notes)
				}
			})
		}
		settings := []string{"DOTNET_gcServer=1", "DOTNET_gcConcurrent=0", "DOTNET_GCgen0size=100000"}
		if major == 9 { // the other collector that comes with it divides memory into segments
			settings = append(settings, "DOTNET_GCName=libclrgc.so")
		}
		for _, env := range settings {
			if major == 9 && env == "DOTNET_gcServer=1" || fixture.Full(t) {
				t.Run(fmt.Sprint(major, " ", env), func(t *testing.T) { allAsync(t, major, startAsync(t, major, assembly, env)) })
			}
			if fixture.Full(t) {
				t.Run(fmt.Sprint(major, " collected ", env), func(t *testing.T) { collectedAsync(t, major, startAsync(t, major, assembly, env, "allocate")) })
			}
		}
		if fixture.Full(t) && major == 9 { // state machines are objects of their own then
			t.Run(fmt.Sprint(major, " debug"), func(t *testing.T) {
				allAsync(t, major, startAsync(t, major, fixture.CSharp(t, major, "-optimize-", "testdata/Async.cs"), ""))
			})
		}
	}
}

// allAsync dumps the program, which does nothing more.
func allAsync(t *testing.T, major int, p *fixture.Program) {
	a := takeAsync(t, p)
	if !a.Complete || len(a.Missing) > 0 || a.Pending != asyncPending[major] || a.HeapBytes == 0 || a.ReadBytes == 0 {
		t.Errorf("%+v", a)
	}
	if got, want := treeLines(t, a), asyncLines[major]; !slices.Equal(got, want) {
		t.Errorf("%s\nshould be\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// collectedAsync dumps the program while it allocates and collects all the time: either all methods are
// shown, or it is said that there may be more; and never anything else.
func collectedAsync(t *testing.T, major int, p *fixture.Program) {
	whole, complete, dumps, most := 0, 0, 3, 0.0
	if fixture.Full(t) {
		dumps = 100
	}
	for range dumps {
		a := takeAsync(t, p)
		got := treeLines(t, a)
		most = max(most, a.TookMS)
		if slices.Equal(got, asyncLines[major]) && a.Pending == asyncPending[major] {
			whole++
		} else if a.Complete {
			t.Fatalf("these are not all:\n%s", strings.Join(got, "\n"))
		}
		if a.Complete {
			complete++
		}
		if wrong := notAsync(a.Tree, "", asyncLines[major]); wrong != "" || a.Complete != (len(a.Missing) == 0) {
			t.Fatalf("%s is nowhere in the program:\n%s\n%q", wrong, strings.Join(got, "\n"), a.Missing)
		}
	}
	t.Logf("all methods in %d of %d dumps, %d of them complete; the look took %.0f ms at most", whole, dumps, complete, most)
	if whole == 0 {
		t.Error("no dump shows all methods")
	}
}

// boundedAsync dumps with bounds that are too small, which are said.
func boundedAsync(t *testing.T, p *fixture.Program) {
	for want, l := range map[string]runtimes.AsyncLimits{
		"the bound of 1000 bytes of heap was reached": {Time: time.Minute, Bytes: 1000},
		"the time for it, 1ns, is over":               {Time: 1, Bytes: 1 << 30},
		"the look was interrupted":                    {Time: time.Minute, Bytes: 1 << 30, Stopped: func() bool { return true }},
	} {
		out := take(t, Options{PIDs: []int{p.PID()}, Async: &l})
		if out.Async == nil || out.Async.Complete || !slices.Contains(out.Async.Missing, want) || out.Async.ReadBytes > 1000 {
			t.Errorf("%+v, %q, should say %q", out.Async, out.Notes, want)
		}
	}
}

// notAsync returns a chain of a tree that lines do not have, whatever else is missing; "" for none.
func notAsync(tree []AsyncNode, above string, lines []string) string {
	for i := range tree {
		n := &tree[i]
		if n.Kind != AsyncUnknown && !hasAsync(lines, n, above) {
			return above + " awaiting " + n.Name
		}
		if wrong := notAsync(n.Awaits, n.Name, lines); wrong != "" {
			return wrong
		}
	}
	return ""
}

// hasAsync reports whether lines have at least as many of what n are, awaited by what is above. If that is
// nothing, what awaits them may be missing.
func hasAsync(lines []string, n *AsyncNode, above string) bool {
	under := map[int]string{} // by indentation, the last name
	for _, line := range lines {
		name := strings.TrimLeft(line, " ")
		depth := len(line) - len(name)
		name = strings.TrimPrefix(name, "awaiting ")
		most := 1
		if _, err := fmt.Sscanf(name, "%d× ", &most); err == nil {
			_, name, _ = strings.Cut(name, "× ")
		}
		name, _, _ = strings.Cut(name, " ")
		under[depth] = name
		if name == n.Name && n.Count <= most && (above == "" || above == under[depth-2]) {
			return true
		}
	}
	return false
}

// startAsync starts Async.cs with a setting of the environment.
func startAsync(t *testing.T, major int, assembly, env string, args ...string) *fixture.Program {
	t.Helper()
	cmd := fixture.DotNetCommand(t, major, assembly, args...)
	if env != "" {
		cmd.Env = append(cmd.Environ(), env)
	}
	p := fixture.Start(t, cmd)
	p.Await("ready")
	return p
}

func takeAsync(t *testing.T, p *fixture.Program) *Async {
	t.Helper()
	out := take(t, Options{PIDs: []int{p.PID()}, Async: asyncLimits()})
	if out.Async == nil {
		t.Fatalf("no asynchronous methods: %q", out.Notes)
	}
	return out.Async
}
