package profile

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestSampleIsCompact(t *testing.T) {
	if n := unsafe.Sizeof(Sample{}); n > 32 {
		t.Errorf("a sample takes %d bytes, want at most 32", n)
	}
}

// The trie returns what a map from (parent, frame) returns, while the table and the chunks grow,
// and across calls of Profile in between.
func TestBuilderNodesAgreeWithMap(t *testing.T) {
	b := NewBuilder()
	want := map[Node]uint32{}
	r := rand.New(rand.NewPCG(1, 2))
	last := uint32(0)
	for i := range 200_000 {
		n := Node{Parent: last, Frame: r.Uint32N(50)}
		if r.IntN(20) == 0 {
			n.Parent = 0
		}
		got := b.Node(n.Parent, n.Frame)
		if w, ok := want[n]; ok && w != got {
			t.Fatalf("step %d: Node%v = %d, was %d", i, n, got, w)
		}
		want[n] = got
		last = got
		b.Add(Sample{Time: uint64(i), Node: got})
		if i%70_001 == 0 {
			b.Profile()
		}
	}
	p := b.Profile()
	if len(p.Nodes) != len(want)+1 {
		t.Fatalf("%d nodes, want %d", len(p.Nodes), len(want)+1)
	}
	for n, i := range want {
		if p.Nodes[i] != n {
			t.Fatalf("Nodes[%d] = %v, want %v", i, p.Nodes[i], n)
		}
	}
	if len(p.Samples) != 200_000 || b.Samples() != 200_000 {
		t.Fatalf("%d samples", len(p.Samples))
	}
	for i, s := range p.Samples {
		if s.Time != uint64(i) {
			t.Fatalf("sample %d has time %d", i, s.Time)
		}
	}
}

func TestBuilderKnownStackAllocatesNothing(t *testing.T) {
	b := NewBuilder()
	walk := func() {
		n := uint32(RootNode)
		for f := range uint32(130) {
			n = b.Node(n, f)
		}
	}
	walk()
	if a := testing.AllocsPerRun(100, walk); a != 0 {
		t.Errorf("%v allocations for a known stack, want 0", a)
	}
}

// BenchmarkBuilderNode measures one call for stacks of 130 frames, 2,000 different ones in turn:
// 260,000 nodes.
func BenchmarkBuilderNode(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const depth, stacks = 130, 2000
	frames := make([][depth]uint32, stacks)
	for i := range frames {
		split := r.IntN(depth) // stacks share their outer part, as programs' do
		if i > 0 {
			copy(frames[i][:split], frames[r.IntN(i)][:split])
		}
		for j := split; j < depth; j++ {
			frames[i][j] = r.Uint32N(5000)
		}
	}
	bl := NewBuilder()
	add := func(s *[depth]uint32) {
		n := uint32(RootNode)
		for _, f := range s {
			n = bl.Node(n, f)
		}
	}
	for i := range frames {
		add(&frames[i])
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += depth {
		add(&frames[r.IntN(stacks)])
	}
}

// BenchmarkBuilderNodeWarm is the same for one stack of 130 frames.
func BenchmarkBuilderNodeWarm(b *testing.B) {
	bl := NewBuilder()
	b.ReportAllocs()
	for i := 0; i < b.N; i += 130 {
		n := uint32(RootNode)
		for f := range uint32(130) {
			n = bl.Node(n, f)
		}
	}
}

func BenchmarkBuilderAdd(b *testing.B) {
	bl := NewBuilder()
	b.ReportAllocs()
	for i := range b.N {
		bl.Add(Sample{Time: uint64(i)})
	}
}
