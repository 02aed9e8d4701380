package jfr

import (
	"math/rand/v2"
	"testing"
)

// Numbers are what was set, whether they are parallel to the nodes or not.
func TestNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, number := range map[string]func(node uint32) uint32{
		"in step":          func(node uint32) uint32 { return node },
		"apart":            func(node uint32) uint32 { return node + 1<<31 },
		"any":              func(uint32) uint32 { return 1 + r.Uint32N(1<<31) },
		"mostly in step":   func(node uint32) uint32 { return node + r.Uint32N(1000)/999 },
		"now in step only": func(node uint32) uint32 { return node + node>>13 },
	} {
		var dense numbers
		var sparse ids
		want := map[uint32]uint32{}
		for range 20_000 {
			node := r.Uint32N(1 << 16)
			want[node] = number(node)
			if want[node] == 0 {
				delete(want, node) // 0 is not a number
				continue
			}
			dense.set(node, want[node])
			sparse.set(node, want[node])
		}
		for node := range uint32(1<<16 + 1<<13) {
			if got := dense.get(node); got != want[node] {
				t.Fatalf("%s: node %d has number %d, want %d", name, node, got, want[node])
			}
			if got := sparse.get(node); got != want[node] {
				t.Fatalf("%s: of a few, node %d has number %d, want %d", name, node, got, want[node])
			}
		}
	}
}

// Another node that is parallel to the rest takes no additional memory.
func TestNumbersAreSmall(t *testing.T) {
	var n numbers
	const nodes = 1 << 16
	for node := range uint32(nodes) {
		n.set(node, node+7)
	}
	for i, p := range n.pages {
		if p.each != nil {
			t.Fatalf("page %d of nodes in step holds each number", i)
		}
	}
}

// Each hash has one number, and numbers are consecutive.
func TestHashes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	h := hashes{first: 5}
	want := map[[2]uint64]uint32{}
	for range 30_000 {
		k := [2]uint64{r.Uint64N(200), r.Uint64N(100)}
		was, known := want[k]
		if !known {
			was = 5 + uint32(len(want))
			want[k] = was
		}
		if n, old := h.number(k); n != was || old != known {
			t.Fatalf("%v has number %d, known %v; want %d, %v", k, n, old, was, known)
		}
	}
}
