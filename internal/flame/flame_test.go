package flame

import (
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

func TestNothingIsLost(t *testing.T) {
	p := profiletest.Server(5000, 20000, 40)
	tr, err := Merge(p)
	if err != nil {
		t.Fatal(err)
	}
	var weight, count [2]uint64
	for _, s := range p.Samples {
		weight[s.Event] += s.Weight
		count[s.Event]++
	}
	var gotWeight, gotCount [2]uint64
	passed := make([]uint64, len(tr.Order))
	for _, c := range tr.Cells {
		gotWeight[c.Event] += c.Weight
		gotCount[c.Event] += uint64(c.Count)
		passed[c.Node] += uint64(c.Count)
	}
	if weight != gotWeight || count != gotCount {
		t.Errorf("the cells hold weight %v of %v, samples %v of %v", gotWeight, weight, gotCount, count)
	}
	place := make([]uint32, len(tr.Order))
	for i, id := range tr.Order {
		place[id] = uint32(i)
	}
	for i := len(tr.Order) - 1; i > 0; i-- {
		id := tr.Order[i]
		parent := place[tr.Nodes.At(id).Parent]
		if int(parent) >= i || tr.Depth[i] != tr.Depth[parent]+1 {
			t.Fatalf("node %d at depth %d has parent %d at depth %d", i, tr.Depth[i], parent, tr.Depth[parent])
		}
		if passed[i] != uint64(tr.Samples[id]) {
			t.Fatalf("node %d: %d samples by its cells, %d by its frames", i, passed[i], tr.Samples[id])
		}
		passed[parent] += passed[i]
	}
	if passed[0] != uint64(len(p.Samples)) {
		t.Errorf("the root has %d of %d samples", passed[0], len(p.Samples))
	}
}

// TestSumsMergeAlike merges samples one by one, and their sums: the trees are the same.
func TestSumsMergeAlike(t *testing.T) {
	p := profiletest.Server(3000, 30_000, 40)
	tr, err := Merge(p)
	if err != nil {
		t.Fatal(err)
	}
	single, at, err := MergeSamples(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Order) != len(single.Order) {
		t.Fatalf("%d nodes, one by one %d", len(tr.Order), len(single.Order))
	}
	for i := range tr.Order {
		a, b := tr.Order[i], single.Order[i]
		if i > 0 && tr.Symbols[tr.Nodes.At(a).Frame] != single.Symbols[single.Nodes.At(b).Frame] || tr.Depth[i] != single.Depth[i] ||
			tr.Samples[a] != single.Samples[b] || tr.Line[a] != single.Line[b] || tr.Lines[a] != single.Lines[b] {
			t.Fatalf("place %d is another", i)
		}
		for tally := range NumTallies {
			if tr.Tally(tally, a) != single.Tally(tally, b) {
				t.Fatalf("place %d: of sort %d there are %d, one by one %d", i, tally, tr.Tally(tally, a), single.Tally(tally, b))
			}
		}
	}
	cells := make([]Cell, len(at))
	for i, s := range p.Samples {
		cells[i] = Cell{Node: at[i], Thread: s.Thread, Event: s.Event, Count: 1, Weight: s.Weight}
	}
	if want := mergeCells(cells); !slices.Equal(tr.Cells, want) {
		t.Errorf("%d cells, one by one %d", len(tr.Cells), len(want))
	}
}

// TestMerge covers each case of merging in a profile small enough to count by hand.
func TestMerge(t *testing.T) {
	b := profile.NewBuilder()
	p := b.Profile()
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "count", Period: 1}}
	th := b.Thread(1, 1, "main")
	fn := b.Func(profile.Func{Name: "a.B.c"})
	at := func(kind walk.Kind, prov walk.Provenance, line int32) uint32 {
		return b.Frame(profile.Frame{Func: fn, Kind: kind, Prov: prov, Line: line})
	}
	add := func(frame uint32, end walk.End, n int) {
		node := b.Node(profile.RootNode, frame)
		for range n {
			b.Add(profile.Sample{Weight: 2, Node: node, Thread: th, End: end})
		}
	}
	add(at(walk.KindC2, walk.Exact, 10), walk.EndComplete, 3)
	add(at(walk.KindC2, walk.Heuristic, 11), walk.EndComplete, 1) // merges with the first
	add(at(walk.KindInterpreted, walk.Exact, 10), walk.EndComplete, 2)
	add(at(walk.KindC2, walk.Exact, 10), walk.EndTruncated, 1)
	tr, err := Merge(b.Profile())
	if err != nil {
		t.Fatal(err)
	}
	type want struct {
		depth   uint32
		kind    walk.Kind
		end     walk.End
		samples uint64
		guess   uint64
		line    int32
		lines   uint32
	}
	wants := []want{
		{0, 0, 0, 7, 0, 0, 0},
		{1, walk.KindC2, 0, 4, 1, 10, 2},
		{1, walk.KindInterpreted, 0, 2, 0, 10, 1},
		{1, 0, walk.EndTruncated, 1, 0, 0, 0},
		{2, walk.KindC2, 0, 1, 0, 10, 1},
	}
	if len(tr.Order) != len(wants) {
		t.Fatalf("%d nodes, want %d", len(tr.Order), len(wants))
	}
	for i, w := range wants {
		n := tr.Order[i]
		got := want{tr.Depth[i], 0, 0, uint64(tr.Samples[n]), tr.Tally(Heuristic, n), tr.Line[n], tr.Lines[n]}
		if i > 0 {
			sym := tr.Symbols[tr.Nodes.At(n).Frame]
			got.kind, got.end = sym.Kind, sym.End
		}
		if got != w {
			t.Errorf("node %d is %+v, want %+v", i, got, w)
		}
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"java.util.Map.get":    "java.util.Map.get",
		"<script>&":            "<script>&",
		"a\nb\x00c\x7f":        `a\nb\u0000c\u007f`,
		"\u202Egnp.exe\u200b":  `\u202egnp.exe\u200b`,
		"\xff日本":               `\xff日本`,
		"\U000e0041":           `\U000e0041`,
		"ok \ufffd":            `ok \ufffd`,
		strings.Repeat("x", 9): "xxxxxxxxx",
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
	if n := len(Visible(strings.Repeat("é", 1e6))); n > MaxText+8 {
		t.Errorf("a long name has %d bytes", n)
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range profiletest.Hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := Visible(s)
		for _, r := range v {
			if hidden(r) {
				t.Errorf("Visible(%q) = %q hides %U", s, v, r)
			}
		}
	})
}
