package profile

import (
	"math/bits"
	"slices"
)

// chunkBits is the log2 of the size of a chunk of nodes: 2^14 of them take 67 KiB, which is small
// compared with a recording and large compared with the cost of an allocation.
const (
	chunkBits = 14
	chunkSize = 1 << chunkBits
	chunkMask = chunkSize - 1
)

// Trie holds nodes in chunks, so that it grows without copying. It is queried once per frame of
// every sample, and large programs have millions of nodes. A stack that is new is entered at once,
// so that nearly all nodes come right after their parent: for those the parent need not be stored,
// nor looked up in a table. Only the others, the starts of runs, cost more than four bytes.
//
// A frame here may be any number that distinguishes the children of a node.
type Trie struct {
	chunks []*chunk
	n      uint32
	runs   []run    // in order of their nodes
	table  []uint32 // of runs, by parent and frame, open addressing: index+1, 0 is free
	shift  uint8    // 64 - log2(len(table))
}

// chunk is a block of nodes.
type chunk struct {
	frames [chunkSize]uint32
	starts [chunkSize / 64]uint64 // bits: which nodes start a run
	before [chunkSize / 64]uint32 // how many runs start before the nodes of each word
}

// run is a node whose parent is not the node before it.
type run struct{ node, parent uint32 }

// NewTrie returns a trie of only the root, which has index 0.
func NewTrie() *Trie {
	t := &Trie{}
	t.resize(10)
	t.push(0)
	return t
}

// slot returns where a node is looked up first. The high bits of a product depend on all bits of
// the key, so neighbouring keys spread over the table.
func (t *Trie) slot(parent, frame uint32) uint64 {
	h := (uint64(parent)<<32 | uint64(frame)) * 0x9E3779B97F4A7C15
	h ^= h >> 29
	return (h * 0xBF58476D1CE4E5B9) >> t.shift
}

// Seal frees what only Child needs. Child may not be called any more.
func (t *Trie) Seal() { t.table = nil }

// Sealed returns a sealed Trie of the current nodes, which may be read while t grows. Only the last
// chunk is ever written to, in words that describe several nodes.
func (t *Trie) Sealed() *Trie {
	c := &Trie{chunks: slices.Clone(t.chunks), n: t.n, runs: t.runs[:len(t.runs):len(t.runs)]}
	last := *c.chunks[len(c.chunks)-1]
	c.chunks[len(c.chunks)-1] = &last
	return c
}

// At returns node i.
func (t *Trie) At(i uint32) Node {
	c := t.chunks[i>>chunkBits]
	at := i & chunkMask
	starts, bit := c.starts[at>>6], uint64(1)<<(at&63)
	switch {
	case i == RootNode:
		return Node{}
	case starts&bit == 0:
		return Node{i - 1, c.frames[at]}
	}
	r := c.before[at>>6] + uint32(bits.OnesCount64(starts&(bit-1)))
	return Node{t.runs[r].parent, c.frames[at]}
}

// Len is the number of nodes, with the root.
func (t *Trie) Len() int { return int(t.n) }

// Child returns the index of parent's child for frame, and adds it if it is new.
func (t *Trie) Child(parent, frame uint32) uint32 {
	if j := parent + 1; j < t.n {
		c, at := t.chunks[j>>chunkBits], j&chunkMask
		if c.frames[at] == frame && c.starts[at>>6]>>(at&63)&1 == 0 {
			return j
		}
	} else {
		return t.push(frame) // nothing comes after the last node yet
	}
	mask := uint64(len(t.table) - 1)
	for i := t.slot(parent, frame); ; i++ {
		r := t.table[i&mask]
		if r == 0 {
			return t.start(i&mask, parent, frame)
		}
		if r := t.runs[r-1]; r.parent == parent && t.frame(r.node) == frame {
			return r.node
		}
	}
}

// Find returns the index of parent's child for frame. ok is false if there is none.
func (t *Trie) Find(parent, frame uint32) (child uint32, ok bool) {
	if j := parent + 1; j < t.n {
		c, at := t.chunks[j>>chunkBits], j&chunkMask
		if c.frames[at] == frame && c.starts[at>>6]>>(at&63)&1 == 0 {
			return j, true
		}
	}
	mask := uint64(len(t.table) - 1)
	for i := t.slot(parent, frame); ; i++ {
		r := t.table[i&mask]
		if r == 0 {
			return 0, false
		}
		if r := t.runs[r-1]; r.parent == parent && t.frame(r.node) == frame {
			return r.node, true
		}
	}
}

func (t *Trie) frame(i uint32) uint32 { return t.chunks[i>>chunkBits].frames[i&chunkMask] }

// start adds a node that does not come right after its parent.
func (t *Trie) start(place uint64, parent, frame uint32) uint32 {
	i := t.push(frame)
	t.chunks[i>>chunkBits].starts[i&chunkMask>>6] |= 1 << (i & 63)
	t.runs = append(t.runs, run{i, parent})
	t.table[place] = uint32(len(t.runs))
	// Beyond two thirds full the probe sequences get long.
	if len(t.runs)*3 > len(t.table)*2 {
		t.resize(uint8(bits.Len(uint(len(t.table)))))
	}
	return i
}

func (t *Trie) push(frame uint32) uint32 {
	i := t.n
	if i&chunkMask == 0 {
		t.chunks = append(t.chunks, &chunk{})
	}
	c, at := t.chunks[i>>chunkBits], i&chunkMask
	if at&63 == 0 {
		c.before[at>>6] = uint32(len(t.runs))
	}
	c.frames[at] = frame
	t.n++
	return i
}

// resize makes the table 2^log2 places large and enters every run again.
func (t *Trie) resize(log2 uint8) {
	t.table = make([]uint32, 1<<log2)
	t.shift = 64 - log2
	mask := uint64(len(t.table) - 1)
	for i, r := range t.runs {
		place := t.slot(r.parent, t.frame(r.node)) & mask
		for t.table[place] != 0 {
			place = (place + 1) & mask
		}
		t.table[place] = uint32(i) + 1
	}
}

// flat returns all nodes in one slice.
func (t *Trie) flat() []Node {
	all := make([]Node, t.n)
	runs := t.runs
	for i := range all {
		all[i] = Node{uint32(i) - 1, t.frame(uint32(i))}
		if len(runs) > 0 && runs[0].node == uint32(i) {
			all[i].Parent, runs = runs[0].parent, runs[1:]
		}
	}
	all[RootNode] = Node{}
	return all
}
