package profile

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/walk"
)

// All logged samples are read back, with any values.
func TestSampleLog(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var l sampleLog
	var want []Sample
	add := func(s Sample) {
		l.add(s)
		want = append(want, s)
	}
	top := Sample{Time: 1<<64 - 1, Weight: 1<<64 - 1, Node: 1<<32 - 1, Thread: 1<<32 - 1, Event: 1<<16 - 1, Syscall: 1<<16 - 1, State: 255, End: 255, Flags: ^Continued}
	for range 3 * logChunk / maxLogged {
		add(top)
		add(Sample{})
	}
	for i := range 50000 {
		s := Sample{Time: uint64(i) * 1e6, Weight: 998000, Node: r.Uint32N(4 << 20), Thread: r.Uint32N(40)}
		if r.IntN(10) == 0 {
			s.Weight, s.Time = r.Uint64(), s.Time-uint64(r.IntN(1<<30)) // some are out of order
		}
		if r.IntN(10) == 0 {
			s.Event, s.Syscall, s.State, s.End, s.Flags = 1, uint16(r.IntN(400)), StateSleeping, walk.EndTruncated, Stitched
		}
		add(s)
	}
	if got := l.flat(); !slices.Equal(got, want) || l.n != len(want) {
		t.Errorf("%d samples came back differently", len(got))
	}
	size := cap(l.tail)
	for _, c := range l.full {
		size += cap(c.b)
	}
	t.Logf("%d bytes for %d samples", size, l.n)
}

// A trie returns the same node for the same stack, and every node's path to the root.
func TestTrie(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	type edge struct{ parent, frame uint32 }
	trie, known, nodes := NewTrie(), map[edge]uint32{}, []Node{{}}
	var stack []uint32
	for range 40000 {
		stack = stack[:r.IntN(len(stack)+1)]
		for range r.IntN(8) {
			if len(stack) < 60 {
				stack = append(stack, r.Uint32N(5)*1e9)
			}
		}
		node := uint32(RootNode)
		for _, f := range stack {
			got := trie.Child(node, f)
			want, ok := known[edge{node, f}]
			if !ok {
				want = uint32(len(nodes))
				known[edge{node, f}] = want
				nodes = append(nodes, Node{node, f})
			}
			if got != want {
				t.Fatalf("the child %d of %d is %d, want %d", f, node, got, want)
			}
			node = got
		}
	}
	if trie.Len() != len(nodes) || !slices.Equal(trie.flat(), nodes) {
		t.Fatalf("%d nodes, want %d", trie.Len(), len(nodes))
	}
	for i, n := range nodes {
		if got := trie.At(uint32(i)); got != n {
			t.Fatalf("node %d is %v, want %v", i, got, n)
		}
	}
	t.Logf("%d nodes in %d runs", trie.Len(), len(trie.runs))
}
