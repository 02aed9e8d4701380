package dump

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/runtimes"
)

// Async are the asynchronous methods of a .NET program that have begun and wait.
type Async struct {
	Pending   int         `json:"pending"`
	Complete  bool        `json:"complete"`          // these are all, at one moment
	Missing   []string    `json:"missing,omitempty"` // otherwise: why there may be more
	HeapBytes uint64      `json:"heap_bytes"`        // of the heap in which they may be
	ReadBytes uint64      `json:"read_bytes"`        // of it that were read, also if several times
	TookMS    float64     `json:"took_ms"`
	Tree      []AsyncNode `json:"tree"` // those that no other one awaits
}

// Kinds of an AsyncNode.
const (
	AsyncMethod  = "method"
	AsyncObject  = "object"  // a task that is no method's, or what takes its place
	AsyncUnknown = "unknown" // a method awaits something that is not known
)

// AsyncNode are methods or objects that look alike, and what they await.
type AsyncNode struct {
	Count  int         `json:"count"`
	Name   string      `json:"name"`            // of the method, or of the object's type
	Raw    string      `json:"raw,omitempty"`   // of the method's state machine
	Kind   string      `json:"kind"`            // method, object, unknown
	State  *int32      `json:"state,omitempty"` // of a method: the compiler's number for the await
	Detail string      `json:"detail,omitempty"`
	Then   string      `json:"then,omitempty"`  // type of what is called afterwards, if it is nothing of the tree
	Cycle  bool        `json:"cycle,omitempty"` // one of those above is awaited too
	Cut    bool        `json:"cut,omitempty"`   // what is awaited is left out
	Awaits []AsyncNode `json:"awaits,omitempty"`
}

// Bounds of a tree.
const (
	maxAsyncDepth = 200
	maxAsyncNodes = 1 << 14
	maxAsyncWork  = 1 << 22 // members that are looked at
)

// asyncOf arranges what a runtime has found as a tree.
func asyncOf(a *runtimes.Async) *Async {
	t := asyncTree{all: a.Nodes, above: make([]bool, len(a.Nodes)), nodes: maxAsyncNodes, work: maxAsyncWork}
	out := &Async{
		Pending: a.Pending, Missing: a.Missing, HeapBytes: a.Heap, ReadBytes: a.Read,
		TookMS: float64(a.Took.Microseconds()) / 1000, Tree: t.level(t.roots(), 0),
	}
	if t.cut {
		out.Missing = append(slices.Clone(out.Missing), "the tree is too large to be shown whole")
	}
	if out.Complete = len(out.Missing) == 0; out.Tree == nil {
		out.Tree = []AsyncNode{}
	}
	return out
}

// asyncTree arranges nodes as a tree.
type asyncTree struct {
	all   []runtimes.AsyncNode
	above []bool // nodes that are above the place that is arranged
	nodes int    // how many may still be made
	work  int
	cut   bool
}

// roots returns the nodes that nothing awaits, and of those that await each other in a circle one.
func (t *asyncTree) roots() []int32 {
	awaited, seen := make([]bool, len(t.all)), make([]bool, len(t.all))
	for i := range t.all {
		for _, to := range t.all[i].Awaits {
			awaited[to] = true
		}
	}
	var roots []int32
	reach := func(from int32) {
		roots = append(roots, from)
		seen[from] = true
		for queue := []int32{from}; len(queue) > 0; {
			at := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			for _, to := range t.all[at].Awaits {
				if !seen[to] {
					seen[to] = true
					queue = append(queue, to)
				}
			}
		}
	}
	for i := range t.all {
		if n := &t.all[i]; !awaited[i] && (n.Method || len(n.Awaits) > 0) {
			reach(int32(i))
		}
	}
	for i := range t.all {
		if !seen[i] && t.all[i].Method {
			reach(int32(i))
		}
	}
	return roots
}

// asyncKey is equal for nodes that are shown as one.
type asyncKey struct {
	name, raw, detail, then string
	method                  bool
	state                   int32
}

// level arranges nodes that are at one place of the tree.
func (t *asyncTree) level(members []int32, depth int) []AsyncNode {
	groups := map[asyncKey][]int32{}
	for _, i := range members {
		n := &t.all[i]
		k := asyncKey{name: n.Name, raw: n.Raw, detail: n.Detail, method: n.Method, state: n.State}
		if depth == 0 {
			k.then = n.Then
		}
		groups[k] = append(groups[k], i)
	}
	t.work -= len(members)
	var out []AsyncNode
	for k, of := range groups {
		if t.nodes--; t.nodes < 0 || t.work < 0 {
			t.cut = true
			break
		}
		n := AsyncNode{Count: len(of), Name: k.name, Raw: k.raw, Kind: AsyncObject, Detail: k.detail, Then: k.then}
		if k.method {
			n.Kind, n.State = AsyncMethod, &k.state
		}
		t.below(&n, of, depth)
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b AsyncNode) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name), strings.Compare(a.Raw, b.Raw), compareStates(a.State, b.State),
			strings.Compare(a.Detail, b.Detail), strings.Compare(a.Then, b.Then))
	})
	return out
}

func compareStates(a, b *int32) int {
	if a == nil || b == nil {
		return 0
	}
	return cmp.Compare(*a, *b)
}

// below adds what the members of a node await.
func (t *asyncTree) below(n *AsyncNode, members []int32, depth int) {
	unknown := 0
	var awaits []int32
	for _, i := range members {
		t.above[i] = true
	}
	chosen := map[int32]bool{}
	for _, i := range members {
		if t.all[i].Unknown {
			unknown++
		}
		for _, to := range t.all[i].Awaits {
			switch {
			case t.above[to]:
				n.Cycle = true
			case !chosen[to]:
				chosen[to] = true
				awaits = append(awaits, to)
			}
		}
	}
	switch {
	case len(awaits) == 0:
	case depth+1 == maxAsyncDepth:
		n.Cut, t.cut = true, true
	default:
		n.Awaits = t.level(awaits, depth+1)
	}
	if unknown > 0 {
		n.Awaits = append(n.Awaits, AsyncNode{Count: unknown, Name: "something that is not known", Kind: AsyncUnknown})
	}
	for _, i := range members {
		t.above[i] = false
	}
}

// text prints the tree after the threads.
func (a *Async) text(b *bufio.Writer) {
	fmt.Fprintf(b, "\npending asynchronous methods: %d (%.1f MB read of a heap of %.1f MB, in %.1f ms)\n",
		a.Pending, float64(a.ReadBytes)/1e6, float64(a.HeapBytes)/1e6, a.TookMS)
	for _, why := range a.Missing {
		fmt.Fprintf(b, "there may be more: %s\n", plain(why))
	}
	for i := range a.Tree {
		a.Tree[i].text(b, 0)
	}
}

// maxAsyncIndent bounds how far lines are indented.
const maxAsyncIndent = 40

func (n *AsyncNode) text(b *bufio.Writer, depth int) {
	fmt.Fprintf(b, "\t%s", strings.Repeat("  ", min(depth, maxAsyncIndent)))
	if depth > 0 {
		fmt.Fprint(b, "awaiting ")
	}
	if n.Count > 1 {
		fmt.Fprintf(b, "%d× ", n.Count)
	}
	fmt.Fprint(b, plain(n.Name))
	if n.State != nil {
		fmt.Fprintf(b, " [state %d]", *n.State)
	}
	if n.Detail != "" {
		fmt.Fprintf(b, " (%s)", plain(n.Detail))
	}
	switch {
	case n.Then == threadWaits:
		fmt.Fprint(b, ", a thread waits for it")
	case n.Then != "":
		fmt.Fprintf(b, ", followed by %s", plain(n.Then))
	}
	if n.Cycle {
		fmt.Fprint(b, ", awaiting in a circle one of those above")
	}
	if n.Cut {
		fmt.Fprint(b, ", awaiting …")
	}
	fmt.Fprintln(b)
	for i := range n.Awaits {
		n.Awaits[i].text(b, depth+1)
	}
}

// threadWaits is what a task calls that a thread waits for, as in Task.Wait
// (src/libraries/System.Private.CoreLib/src/System/Threading/Tasks/Task.cs).
const threadWaits = "System.Threading.Tasks.Task.SetOnInvokeMres"
