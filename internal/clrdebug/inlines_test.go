package clrdebug

import (
	"slices"
	"testing"
)

// nibbleWriter writes what nibbles reads.
type nibbleWriter struct {
	b  []byte
	at int
}

func (w *nibbleWriter) nibble(v uint32) {
	if w.at&1 == 0 {
		w.b = append(w.b, 0)
	}
	w.b[w.at/2] |= byte(v&15) << (4 * (w.at & 1))
	w.at++
}

func (w *nibbleWriter) number(v uint32) {
	shift := 0
	for v>>shift > 7 {
		shift += 3
	}
	for ; shift > 0; shift -= 3 {
		w.nibble(v>>shift&7 | 8)
	}
	w.nibble(v & 7)
}

func (w *nibbleWriter) signed(v int32) {
	if v < 0 {
		w.number(uint32(-v)<<1 | 1)
	} else {
		w.number(uint32(v) << 1)
	}
}

func (w *nibbleWriter) word(v uint64) {
	for range 16 {
		w.nibble(uint32(v))
		v >>= 4
	}
}

type rawInlinee struct {
	method         uint64
	il             int32
	child, sibling uint32
}

// encodeInlines writes what DecodeInlines reads.
func encodeInlines(nodes []rawInlinee, places []Place) []byte {
	var w nibbleWriter
	w.number(uint32(len(nodes)))
	w.number(uint32(len(places)))
	last := rawInlinee{il: -2}
	for _, n := range nodes {
		w.word(n.method)
		w.signed(n.il - last.il)
		w.signed(int32(n.child) - int32(last.child))
		w.signed(int32(n.sibling) - int32(last.sibling))
		last = n
	}
	before := Place{IL: -2}
	for _, p := range places {
		w.number(p.Native - before.Native)
		w.signed(int32(p.Node) - int32(before.Node))
		w.signed(p.IL - before.IL)
		w.number(1)
		before = p
	}
	return w.b
}

func TestInlines(t *testing.T) {
	places := []Place{{0, 0, -2}, {4, 0, 3}, {9, 2, 0}, {20, 3, 17}, {90, 1, 5}, {400, 0, -3}}
	data := encodeInlines([]rawInlinee{
		{0x7f12_3456_7890_abc8, -1, 1, 0}, {0x7fff_0000_0000_1230, 7, 2, 3}, {8, 1, 0, 0}, {1<<64 - 8, 250, 0, 0},
	}, places)
	in := DecodeInlines(data)
	if in == nil {
		t.Fatal("it cannot be decoded")
	}
	if !slices.Equal(in.Places, places) {
		t.Errorf("the places are %v", in.Places)
	}
	for i, want := range []Inlinee{{Method: 0x7f12_3456_7890_abc8, IL: -1, Parent: NoParent}, {Method: 0x7fff_0000_0000_1230, IL: 7}, {Method: 8, IL: 1, Parent: 1}, {Method: 1<<64 - 8, IL: 250}} {
		if n := in.Nodes[i]; n.Method != want.Method || n.IL != want.IL || n.Parent != want.Parent {
			t.Errorf("inlinee %d is %+v, should be %+v", i, n, want)
		}
	}
	for off, want := range map[uint32]uint32{0: 0, 8: 0, 9: 2, 19: 2, 20: 3, 399: 1, 400: 0, 1 << 30: 0} {
		if p, ok := in.At(off); !ok || p.Node != want {
			t.Errorf("the code at %d is of inlinee %d, should be %d", off, p.Node, want)
		}
	}
	for n := range data {
		if DecodeInlines(data[:n]) != nil {
			t.Errorf("its first %d bytes of %d can be decoded", n, len(data))
		}
	}
}

// TestInlinesHostile decodes trees that are none.
func TestInlinesHostile(t *testing.T) {
	for name, nodes := range map[string][]rawInlinee{
		"a child of two":         {{0, 0, 2, 0}, {8, 0, 2, 0}, {16, 0, 0, 0}},
		"a sibling of itself":    {{0, 0, 1, 0}, {8, 0, 0, 1}},
		"a child that is not in": {{0, 0, 2, 0}, {8, 0, 0, 0}},
	} {
		if in := DecodeInlines(encodeInlines(nodes, nil)); in != nil {
			t.Errorf("%s: %+v", name, in)
		}
	}
}

func FuzzInlines(f *testing.F) {
	f.Add(encodeInlines([]rawInlinee{{0x1000, -1, 1, 0}, {0x2000, 7, 2, 3}, {8, 1, 0, 0}, {16, 250, 0, 0}}, []Place{{0, 0, -2}, {9, 2, 0}, {20, 3, 17}}), uint32(10))
	f.Fuzz(func(t *testing.T, data []byte, off uint32) {
		in := DecodeInlines(data)
		if in == nil {
			return
		}
		if p, ok := in.At(off); ok && (p.Native > off || int(p.Node) >= len(in.Nodes)) {
			t.Errorf("the code at %d is of %+v", off, p)
		}
		for i, n := range in.Nodes {
			if n.Parent != NoParent && int(n.Parent) >= len(in.Nodes) {
				t.Errorf("inlinee %d: %+v", i, n)
			}
		}
	})
}
