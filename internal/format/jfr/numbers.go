package jfr

// numbers gives the nodes of the source their numbers in the file. A stack that is new
// to the source mostly gets both kinds one after the other, so that whether a node is
// there says which number it has: one bit a node instead of four bytes. A large program
// comes to millions.
type numbers struct {
	pages []*numberPage
}

const (
	numberBits = 12
	numberMask = 1<<numberBits - 1
)

// numberPage holds the numbers of 4096 nodes.
type numberPage struct {
	apart uint32 // number minus node, as long as it is the same of all
	have  [(1 << numberBits) / 64]uint64
	each  []uint32 // by node, once they differ; 0: none
}

// get gives a node's number, 0 if it has none.
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

// set gives a node its number.
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

// get gives a node's number, 0 if it has none.
func (t *ids) get(node uint32) uint32 {
	switch {
	case node == 0:
		return t.root
	case t.n == 0:
		return 0
	}
	return t.place(node).number
}

// set gives a node its number.
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
