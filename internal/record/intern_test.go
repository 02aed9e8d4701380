package record

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// naming names every frame by its Ref and PC and counts how often it is called.
type naming struct{ asked int }

func (n *naming) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	n.asked++
	if f.Ref%3 == 0 { // with an inlined frame
		out = append(out, symbol.Frame{Function: fmt.Sprintf("in%d", f.Ref), Kind: walk.KindInlined})
	}
	return append(out, symbol.Frame{Function: fmt.Sprintf("f%d.%d", f.Ref, f.PC), Kind: f.Kind})
}

func newTestInterner() (*interner, *naming, *profile.Builder) {
	b := profile.NewBuilder()
	in := newInterner(b, nil)
	n := &naming{}
	in.resolvers = []symbol.Resolver{nil, n}
	in.byRef = []bool{false, false}
	return in, n, b
}

// A node stands for its stack, whatever the order of stacks and threads.
func TestInternerKeepsStacks(t *testing.T) {
	in, n, b := newTestInterner()
	r := rand.New(rand.NewPCG(1, 2))
	want := map[uint32]string{}
	distinct := map[string]bool{}
	var stack walk.Stack
	stack.Frames = make([]walk.Frame, 0, 64)
	for range 20000 {
		// Most outer frames are the same, as in real programs.
		keep := r.IntN(len(stack.Frames) + 1)
		stack.Frames = stack.Frames[len(stack.Frames)-keep:]
		for range r.IntN(6) {
			f := walk.Frame{Ref: uint64(r.IntN(12)), PC: uint64(r.IntN(4)), Owner: 1, Kind: walk.KindC2}
			if r.IntN(50) == 0 {
				f.Owner = 0 // belongs to nobody
			}
			if len(stack.Frames) < 60 {
				stack.Frames = append([]walk.Frame{f}, stack.Frames...)
			}
		}
		text := ""
		for _, f := range stack.Frames {
			switch {
			case f.Owner == 0:
				text += "[unknown];"
			case f.Ref%3 == 0:
				text += fmt.Sprintf("in%d;f%d.%d;", f.Ref, f.Ref, f.PC)
			default:
				text += fmt.Sprintf("f%d.%d;", f.Ref, f.PC)
			}
			if f.Owner == 1 {
				distinct[fmt.Sprint(f.Ref, f.PC)] = true
			}
		}
		node, _ := in.node(uint32(r.IntN(400)), &stack)
		if old, ok := want[node]; ok && old != text {
			t.Fatalf("node %d stands for\n%s\nand\n%s", node, old, text)
		}
		want[node] = text
	}
	p := b.Profile()
	for node, text := range want {
		got := ""
		for i := node; i != profile.RootNode; i = p.Nodes[i].Parent {
			got += p.Funcs[p.Frames[p.Nodes[i].Frame].Func].Name + ";"
		}
		if got != text {
			t.Fatalf("node %d is\n%s\nwant\n%s", node, got, text)
		}
	}
	if n.asked != len(distinct) {
		t.Errorf("%d names were asked for %d distinct frames", n.asked, len(distinct))
	}
	if len(in.last) > maxLast {
		t.Errorf("%d last stacks are kept", len(in.last))
	}
}

// A new interner returns the same node for a stack as the one before.
func TestInternerAnew(t *testing.T) {
	in, n, b := newTestInterner()
	stack := func(i uint64) *walk.Stack {
		return &walk.Stack{Frames: []walk.Frame{{Ref: i, PC: 1, Owner: 1, Kind: walk.KindC2}, {Ref: i / 10, PC: 2, Owner: 1, Kind: walk.KindC2}}}
	}
	var nodes []uint32
	for i := range uint64(1000) {
		node, _ := in.node(1, stack(i))
		nodes = append(nodes, node)
	}
	in = in.anew(b)
	if n.asked = 0; len(in.keys) != 0 {
		t.Errorf("it knows %d frames", len(in.keys))
	}
	before := b.Nodes()
	for i := range uint64(1000) {
		if node, ok := in.node(1, stack(i)); !ok || node != nodes[i] {
			t.Fatalf("stack %d has node %d, before it had %d", i, node, nodes[i])
		}
	}
	if b.Nodes() != before || n.asked == 0 {
		t.Errorf("%d nodes instead of %d; %d names were asked for", b.Nodes(), before, n.asked)
	}
}

// Stubs of a runtime share a Ref but not a name; other code that it identifies by Ref is one frame
// at every PC.
func TestInternerTellsStubsApart(t *testing.T) {
	in, _, b := newTestInterner()
	in.byRef[1] = true
	names := func(kind walk.Kind) []string {
		var out []string
		for pc := range uint64(3) {
			var st walk.Stack
			st.Push(walk.Frame{Ref: 7, PC: pc, Owner: 1, Kind: kind})
			node, _ := in.node(1, &st)
			p := b.Profile()
			out = append(out, p.Funcs[p.Frames[p.Nodes[node].Frame].Func].Name)
		}
		return out
	}
	if got := names(walk.KindStub); !slices.Equal(got, []string{"f7.0", "f7.1", "f7.2"}) {
		t.Errorf("stubs: %v", got)
	}
	if got := names(walk.KindC2); !slices.Equal(got, []string{"f7.0", "f7.0", "f7.0"}) {
		t.Errorf("compiled: %v", got)
	}
}

func BenchmarkNode(b *testing.B) {
	in, _, _ := newTestInterner()
	var stacks [2]walk.Stack
	for i := range stacks {
		for d := range 130 {
			f := walk.Frame{Ref: uint64(d), PC: 1, Owner: 1, Kind: walk.KindC2}
			if d < 5 {
				f.PC = uint64(i)
			}
			stacks[i].Push(f)
		}
		in.node(1, &stacks[i])
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in.node(1, &stacks[i&1])
	}
}
