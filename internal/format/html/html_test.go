package html

import (
	"bytes"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/web"
)

func page(t testing.TB, p *profile.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p, Options{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestNothingIsLost(t *testing.T) {
	p := synthetic(5000, 20000, 40)
	tr, err := aggregate(p)
	if err != nil {
		t.Fatal(err)
	}
	var weight, count [2]uint64
	for _, s := range p.Samples {
		weight[s.Event] += s.Weight
		count[s.Event]++
	}
	var gotWeight, gotCount [2]uint64
	passed := make([]uint64, len(tr.order))
	for _, c := range tr.cells {
		gotWeight[c.event] += c.weight
		gotCount[c.event] += uint64(c.count)
		passed[c.node] += uint64(c.count)
	}
	if weight != gotWeight || count != gotCount {
		t.Errorf("the cells hold weight %v of %v, samples %v of %v", gotWeight, weight, gotCount, count)
	}
	place := make([]uint32, len(tr.order))
	for i, id := range tr.order {
		place[id] = uint32(i)
	}
	for i := len(tr.order) - 1; i > 0; i-- {
		id := tr.order[i]
		parent := place[tr.nodes.At(id).Parent]
		if int(parent) >= i || tr.depth[i] != tr.depth[parent]+1 {
			t.Fatalf("node %d at depth %d has parent %d at depth %d", i, tr.depth[i], parent, tr.depth[parent])
		}
		if passed[i] != uint64(tr.samples[id]) {
			t.Fatalf("node %d: %d samples by its cells, %d by its frames", i, passed[i], tr.samples[id])
		}
		passed[parent] += passed[i]
	}
	if passed[0] != uint64(len(p.Samples)) {
		t.Errorf("the root has %d of %d samples", passed[0], len(p.Samples))
	}
}

// TestMerge has each case of merging in a profile small enough to count by hand.
func TestMerge(t *testing.T) {
	b := profile.NewBuilder()
	p := b.Profile()
	p.Events = []profile.Event{{Name: "cpu", Unit: "count", Period: 1}}
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
	tr, err := aggregate(b.Profile())
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
	if len(tr.order) != len(wants) {
		t.Fatalf("%d nodes, want %d", len(tr.order), len(wants))
	}
	for i, w := range wants {
		n := tr.order[i]
		got := want{tr.depth[i], 0, 0, uint64(tr.samples[n]), tr.tally(heuristic, n), tr.line[n], tr.lines[n]}
		if i > 0 {
			sym := tr.symbols[tr.nodes.At(n).Frame]
			got.kind, got.end = sym.kind, sym.end
		}
		if got != w {
			t.Errorf("node %d is %+v, want %+v", i, got, w)
		}
	}
}

func TestSize(t *testing.T) {
	p := synthetic(200_000, 400_000, 60)
	tr, err := aggregate(p)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tr.order); n < 190_000 {
		t.Fatalf("only %d nodes", n)
	}
	size := len(page(t, p))
	t.Logf("%d nodes, %d cells: %d bytes", len(tr.order), len(tr.cells), size)
	if size > 2<<20 {
		t.Errorf("%d nodes take %d bytes, want at most 2 MiB", len(tr.order), size)
	}
}

// TestSelfContained makes sure that the page names nothing outside of itself and
// that nothing from the target stands in it as markup.
func TestSelfContained(t *testing.T) {
	p := synthetic(1000, 2000, 20)
	p.Meta.Command = hostile[0] + hostile[1]
	out := string(page(t, p))
	if n := strings.Count(out, "<script"); n != 2 {
		t.Errorf("%d script elements, want the data and the program", n)
	}
	for _, bad := range []string{"<img", "onerror='", `owned"</script>`} {
		if strings.Contains(out, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, u := range regexp.MustCompile(`(?i)(https?:)?//[a-z0-9.-]+\.[a-z]{2,}`).FindAllString(out, -1) {
		if u != "http://www.w3.org" { // the name of a vocabulary, never fetched
			t.Errorf("the page names %s", u)
		}
	}
	for _, must := range []string{hash(web.FlameJS), hash(web.FlameCSS), "default-src 'none'"} {
		if !strings.Contains(out, must) {
			t.Errorf("the policy lacks %s", must)
		}
	}
	for name, s := range map[string]string{"script": web.FlameJS, "style": web.FlameCSS} {
		if strings.Contains(strings.ToLower(s), "</"+name) || strings.Contains(s, "<!--") {
			t.Errorf("the %s would end its element early", name)
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
		if got := visible(in); got != want {
			t.Errorf("visible(%q) = %q, want %q", in, got, want)
		}
	}
	if n := len(visible(strings.Repeat("é", 1e6))); n > maxText+8 {
		t.Errorf("a long name has %d bytes", n)
	}
}

func TestInvalid(t *testing.T) {
	valid := func() *profile.Profile { return synthetic(100, 100, 5) }
	for name, damage := range map[string]func(p *profile.Profile){
		"no root":        func(p *profile.Profile) { p.Nodes = nil },
		"loop":           func(p *profile.Profile) { p.Nodes[5].Parent = 5 },
		"frame":          func(p *profile.Profile) { p.Nodes[5].Frame = math.MaxUint32 },
		"func":           func(p *profile.Profile) { p.Frames[0].Func = math.MaxUint32 },
		"sample node":    func(p *profile.Profile) { p.Samples[0].Node = math.MaxUint32 },
		"sample thread":  func(p *profile.Profile) { p.Samples[0].Thread = math.MaxUint32 },
		"sample event":   func(p *profile.Profile) { p.Samples[0].Event = math.MaxUint16 },
		"no event table": func(p *profile.Profile) { p.Events = nil },
	} {
		p := valid()
		damage(p)
		if err := Write(io.Discard, p, Options{}); !errors.Is(err, profile.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
	if err := Write(io.Discard, profile.NewBuilder().Profile(), Options{}); err != nil {
		t.Errorf("an empty profile: %v", err)
	}
}

type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	p := synthetic(2000, 4000, 20)
	size := len(page(t, p))
	for _, left := range []int{0, 1000, size / 2, size - 1} {
		if err := Write(&failing{left}, p, Options{}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("after %d bytes: error %v", left, err)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := visible(s)
		for _, r := range v {
			if hidden(r) {
				t.Errorf("visible(%q) = %q hides %U", s, v, r)
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	p := synthetic(200_000, 400_000, 60)
	b.ReportAllocs()
	for b.Loop() {
		if err := Write(io.Discard, p, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
