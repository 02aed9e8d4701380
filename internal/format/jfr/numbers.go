package jfr

// numbers maps the nodes of the source to their numbers in the file. A stack that is new to the
// source mostly gets both consecutively, so that it is enough to know whether a node is there: one
// bit a node instead of four bytes. A large program has millions of nodes.
type numbers struct {
	pages []*numberPage
}

const (
	numberBits = 12
	numberMask = 1<<numberBits - 1
)

// numberPage holds the numbers of 4096 nodes.
type numberPage struct {
	apart uint32 // number minus node, as long as it is the same for all
	have  [(1 << numberBits) / 64]uint64
	each  []uint32 // by node, if they differ; 0: none
}

// get returns a node's number, 0 if it has none.
func (n *numbers) get(node uint32) uint32 {
	if int(node>>numberBits) >= len(n.pages) {
		return 0
	}
	p, at := n.pages[node>>numberBits], node&numberMask
	switch {
	case p == nil:
		return 0
	case p.each != nil:
		return p.each[at]
	case p.have[at>>6]>>(at&63)&1 == 0:
		return 0
	}
	return node + p.apart
}

// set sets a node's number.
func (n *numbers) set(node, number uint32) {
	n.pages = at(n.pages, node>>numberBits)
	p, at := n.pages[node>>numberBits], node&numberMask
	if p == nil {
		p = &numberPage{apart: number - node}
		n.pages[node>>numberBits] = p
	}
	if p.each == nil && number-node != p.apart {
		each := make([]uint32, 1<<numberBits)
		for i := range each {
			each[i] = n.get(node&^numberMask + uint32(i))
		}
		p.each = each
	}
	if p.each != nil {
		p.each[at] = number
		return
	}
	p.have[at>>6] |= 1 << (at & 63)
}

// ids are the numbers of a few of many nodes.
type ids struct {
	table []id // open addressing; node 0: free
	n     int
	root  uint32 // the number of node 0
}

type id struct{ node, number uint32 }

func (t *ids) place(node uint32) *id {
	mask := uint32(len(t.table) - 1)
	h := node * 0x9e3779b1
	for h ^= h >> 15; ; h++ {
		if e := &t.table[h&mask]; e.node == node || e.node == 0 {
			return e
		}
	}
}

// get returns a node's number, 0 if it has none.
func (t *ids) get(node uint32) uint32 {
	switch {
	case node == 0:
		return t.root
	case t.n == 0:
		return 0
	}
	return t.place(node).number
}

// set sets a node's number.
func (t *ids) set(node, number uint32) {
	if node == 0 {
		t.root = number
		return
	}
	if 4*(t.n+1) > 3*len(t.table) {
		old := t.table
		t.table = make([]id, max(1024, 2*len(old)))
		for _, e := range old {
			if e.node != 0 {
				*t.place(e.node) = e
			}
		}
	}
	e := t.place(node)
	if e.node == 0 {
		t.n++
	}
	*e = id{node, number}
}

// hashes assigns numbers to hashes, from first on.
type hashes struct {
	first uint32
	pages [][][2]uint64 // by number
	n     uint32
	table []uint32 // open addressing: how many came before it plus 1, 0: free
}

// number returns the number of a hash, the next number if the hash is new.
func (t *hashes) number(h [2]uint64) (number uint32, known bool) {
	if 4*(int(t.n)+1) > 3*len(t.table) {
		t.grow()
	}
	mask := uint64(len(t.table) - 1)
	i := h[0]
	for ; t.table[i&mask] != 0; i++ {
		if n := t.table[i&mask] - 1; t.hash(n) == h {
			return t.first + n, true
		}
	}
	t.n++
	t.table[i&mask] = t.n
	if (t.n-1)&numberMask == 0 {
		t.pages = append(t.pages, make([][2]uint64, 0, 1<<numberBits))
	}
	last := &t.pages[len(t.pages)-1]
	*last = append(*last, h)
	return t.first + t.n - 1, false
}

func (t *hashes) hash(n uint32) [2]uint64 { return t.pages[n>>numberBits][n&numberMask] }

func (t *hashes) grow() {
	t.table = make([]uint32, max(1024, 2*len(t.table)))
	mask := uint64(len(t.table) - 1)
	for n := range t.n {
		i := t.hash(n)[0]
		for t.table[i&mask] != 0 {
			i++
		}
		t.table[i&mask] = n + 1
	}
}
