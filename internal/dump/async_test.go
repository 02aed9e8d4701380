package dump

import (
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/runtimes"
)

// treeLines returns the lines of a tree, without the tab before them.
func treeLines(t *testing.T, a *Async) (out []string) {
	t.Helper()
	var text strings.Builder
	if err := (&Dump{Processes: []Process{{Async: a}}}).WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if line, ok := strings.CutPrefix(line, "\t"); ok {
			out = append(out, line)
		}
	}
	return out
}

// method returns a method that awaits others, by their indices.
func method(name string, state int32, awaits ...int32) runtimes.AsyncNode {
	return runtimes.AsyncNode{Name: name, Method: true, State: state, Awaits: awaits}
}

// TestAsyncTree arranges methods that await each other.
func TestAsyncTree(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []runtimes.AsyncNode
		want  []string
	}{
		"nothing": {nil, nil},
		"equal ones are one": {
			[]runtimes.AsyncNode{method("A", 0, 3), method("A", 0, 4), method("A", 1, 4), {Name: "Task", Detail: "promise"}, {Name: "Task", Detail: "promise"}},
			[]string{"2× A [state 0]", "  awaiting 2× Task (promise)", "A [state 1]", "  awaiting Task (promise)"},
		},
		"one that many await is one": {
			[]runtimes.AsyncNode{method("A", 0, 2), method("A", 0, 2), method("B", 0, 3), {Name: "Task"}},
			[]string{"2× A [state 0]", "  awaiting B [state 0]", "    awaiting Task"},
		},
		"unknown": {
			[]runtimes.AsyncNode{{Name: "A", Method: true, Unknown: true, Then: threadWaits}, {Name: "A", Method: true, Unknown: true, Then: "X"}},
			[]string{"A [state 0], a thread waits for it", "  awaiting something that is not known", "A [state 0], followed by X", "  awaiting something that is not known"},
		},
		"a circle": {
			[]runtimes.AsyncNode{method("A", 0, 1), method("B", 0, 2), method("C", 0, 0)},
			[]string{"A [state 0]", "  awaiting B [state 0]", "    awaiting C [state 0], awaiting in a circle one of those above"},
		},
		"itself": {
			[]runtimes.AsyncNode{method("A", 0, 0)},
			[]string{"A [state 0], awaiting in a circle one of those above"},
		},
		"a task that nobody awaits": {
			[]runtimes.AsyncNode{{Name: "WhenAll", Awaits: []int32{1, 2}}, method("A", 0, 2), {Name: "Task"}},
			[]string{"WhenAll", "  awaiting A [state 0]", "    awaiting Task", "  awaiting Task"},
		},
		"escapes": {
			[]runtimes.AsyncNode{{Name: "A\x1b[31m\n", Method: true, Then: "\x07"}},
			[]string{"A?[31m? [state 0], followed by ?"},
		},
	} {
		a := asyncOf(&runtimes.Async{Nodes: c.nodes})
		if !a.Complete {
			t.Errorf("%s: %q", name, a.Missing)
		}
		if got := treeLines(t, a); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nshould be\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestAsyncTreeBounds arranges methods of which a tree would be endless: a long chain, and layers in which
// each method awaits all of the next.
func TestAsyncTreeBounds(t *testing.T) {
	var chain, layers []runtimes.AsyncNode
	for i := range int32(100000) {
		chain = append(chain, method("A", i, i+1))
	}
	chain = append(chain, runtimes.AsyncNode{Name: "Task"})
	for i := range int32(40) {
		layers = append(layers, method("A", i, 2*i+2, 2*i+3), method("B", i, 2*i+2, 2*i+3))
	}
	layers = append(layers, runtimes.AsyncNode{Name: "Task"}, runtimes.AsyncNode{Name: "Task"})
	for name, nodes := range map[string][]runtimes.AsyncNode{"chain": chain, "layers": layers} {
		a := asyncOf(&runtimes.Async{Nodes: nodes})
		if n := countAsync(a.Tree); a.Complete || len(a.Missing) != 1 || n > maxAsyncNodes || n < maxAsyncDepth {
			t.Errorf("%s: %d, %q", name, n, a.Missing)
		}
	}
}

func countAsync(tree []AsyncNode) (n int) {
	for i := range tree {
		n += 1 + countAsync(tree[i].Awaits)
	}
	return n
}
