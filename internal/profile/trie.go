package profile

import "math/bits"

// chunkBits is the size of a chunk of nodes: 2^14 of 8 bytes are 128 KiB, small
// beside a recording and large beside what allocating it costs.
const (
	chunkBits = 14
	chunkSize = 1 << chunkBits
	chunkMask = chunkSize - 1
)

// Trie holds nodes in chunks, so that it grows without copying, and finds one
// by its parent and frame through an open-addressing table of indices: it is
// asked once per frame of every sample. What is called a frame here may be any
// number that tells the children of a node apart.
type Trie struct {
	chunks [][]Node
	n      uint32
	table  []uint32 // index of a node, 0 for a free place: the root is never looked up
	shift  uint8    // 64 - log2(len(table))
}

// NewTrie gives a trie of nothing but its root, which has index 0.
func NewTrie() *Trie {
	t := &Trie{}
	t.resize(12)
	t.push(Node{})
	return t
}

// slot is where a node is looked for first. The high bits of a product depend
// on all bits of the key, so neighbouring keys spread over the table.
func (t *Trie) slot(parent, frame uint32) uint64 {
	h := (uint64(parent)<<32 | uint64(frame)) * 0x9E3779B97F4A7C15
	h ^= h >> 29
	return (h * 0xBF58476D1CE4E5B9) >> t.shift
}

// Seal lets go of what only Child needs, more than half of the Trie's memory.
// Child may not be called any more.
func (t *Trie) Seal() { t.table = nil }

// At gives node i.
func (t *Trie) At(i uint32) Node { return t.chunks[i>>chunkBits][i&chunkMask] }

// Len is the number of nodes, with the root.
func (t *Trie) Len() int { return int(t.n) }

// Child gives the index of parent's child for frame, adding it if it is new.
func (t *Trie) Child(parent, frame uint32) uint32 {
	// A stack that was new was entered in one go: most nodes' first child comes
	// right after them, on the same line of the CPU's cache.
	if j := parent + 1; j < t.n {
		if n := &t.chunks[j>>chunkBits][j&chunkMask]; n.Frame == frame && n.Parent == parent {
			return j
		}
	}
	mask := uint64(len(t.table) - 1)
	for i := t.slot(parent, frame); ; i++ {
		j := t.table[i&mask]
		if j == 0 {
			return t.insert(i&mask, parent, frame)
		}
		if n := &t.chunks[j>>chunkBits][j&chunkMask]; n.Frame == frame && n.Parent == parent {
			return j
		}
	}
}

func (t *Trie) insert(place uint64, parent, frame uint32) uint32 {
	i := t.push(Node{parent, frame})
	t.table[place] = i
	// Beyond two thirds full the runs of taken places get long.
	if uint64(t.n)*3 > uint64(len(t.table))*2 {
		t.resize(uint8(bits.Len(uint(len(t.table)))))
	}
	return i
}

func (t *Trie) push(n Node) uint32 {
	i := t.n
	if i&chunkMask == 0 {
		t.chunks = append(t.chunks, make([]Node, chunkSize))
	}
	t.chunks[i>>chunkBits][i&chunkMask] = n
	t.n++
	return i
}

// resize makes the table 2^log2 places large and enters every node again.
func (t *Trie) resize(log2 uint8) {
	t.table = make([]uint32, 1<<log2)
	t.shift = 64 - log2
	mask := uint64(len(t.table) - 1)
	for i := uint32(1); i < t.n; i++ {
		n := t.At(i)
		place := t.slot(n.Parent, n.Frame) & mask
		for t.table[place] != 0 {
			place = (place + 1) & mask
		}
		t.table[place] = i
	}
}

// flat gives all nodes in one slice. Full chunks then share its memory; the
// last one, which still grows, stays by itself.
func (t *Trie) flat() []Node {
	all := make([]Node, t.n)
	for c, from := 0, 0; from < len(all); c, from = c+1, from+chunkSize {
		if copy(all[from:], t.chunks[c]) == chunkSize {
			t.chunks[c] = all[from : from+chunkSize : from+chunkSize]
		}
	}
	return all
}

// sampleChunk is how many samples are allocated at once: 32 bytes each.
const sampleChunk = 4096

// sampleLog holds samples in chunks, so that it grows without copying.
type sampleLog struct {
	chunks [][]Sample
	n      int
}

func (l *sampleLog) add(s Sample) {
	at := l.n % sampleChunk
	if at == 0 {
		l.chunks = append(l.chunks, make([]Sample, sampleChunk))
	}
	l.chunks[len(l.chunks)-1][at] = s
	l.n++
}

// flat gives all samples in one slice; see Trie.flat.
func (l *sampleLog) flat() []Sample {
	all := make([]Sample, l.n)
	for c, from := 0, 0; from < len(all); c, from = c+1, from+sampleChunk {
		if copy(all[from:], l.chunks[c]) == sampleChunk {
			l.chunks[c] = all[from : from+sampleChunk : from+sampleChunk]
		}
	}
	return all
}
