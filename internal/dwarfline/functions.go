package dwarfline

import (
	"cmp"
	"slices"
	"sort"
)

const (
	maxUnitDIEs  = 16 << 20 // read in one unit
	maxUnitNodes = 2 << 20
	maxDepth     = 512 // levels of nested entries
)

// unitCode is what a unit's entries say about addresses.
type unitCode struct {
	roots     []root
	functions []rootSpan // sorted by lo
	nodes     []node
	inlined   []nodeSpan // grouped by root
	lines     *lineTable
}

// root is a function that was compiled out of line.
type root struct {
	die         uint64
	first, last int32 // its inlined spans
}

type rootSpan struct {
	span
	root int32
}

// node is one inlined call.
type node struct {
	die                uint64
	parent             int32 // the call it was inlined into, -1 for the root
	depth              int32
	callFile, callLine uint32
	discriminator      uint32
}

type nodeSpan struct {
	span
	root, node int32
}

// scope reports whether children of an entry may be functions.
func scope(tag uint16) bool {
	switch tag {
	case tagClass, tagLexicalBlock, tagCompileUnit, tagStruct, tagUnion, tagInlined, tagModule, tagCatch, tagSubprogram, tagTry, tagNamespace:
		return true
	}
	return false
}

// readFunctions walks a unit's entries once.
func (d *Data) readFunctions(u *unit) *unitCode {
	c := &unitCode{}
	if !u.root {
		return c
	}
	u.abbrevs = d.abbrevTable(u.abbrev)
	type level struct {
		root, node int32
		scope      uint64 // namespace or class, 0 outside
	}
	var stack [maxDepth]level
	depth := 0
	cur := level{-1, -1, 0}
	b := &d.cur.info
	b.seek(u.dies, u.end)
	g := &budget{left: maxUnitNodes * 2}
	var e die
	var spans []span
	for n := 0; n < maxUnitDIEs && !b.bad && b.off < u.end && len(c.nodes) < maxUnitNodes && g.left > 0 && !d.stopped(); n++ {
		at := b.off
		if !d.readDIE(b, u, &e) {
			if depth == 0 || b.bad {
				break
			}
			depth--
			cur = stack[depth]
			continue
		}
		here := cur
		switch e.tag {
		case tagNamespace, tagClass, tagStruct, tagUnion:
			if e.children {
				d.keepScope(at, cur.scope)
				here.scope = at
			}
		case tagSubprogram:
			if e.linkage.form == 0 && e.name.form != 0 {
				d.keepScope(at, cur.scope)
			}
			if spans = d.spans(u, &e, g, spans[:0]); len(spans) > 0 {
				here.root, here.node = int32(len(c.roots)), -1
				c.roots = append(c.roots, root{die: at})
				for _, s := range spans {
					c.functions = append(c.functions, rootSpan{s, here.root})
				}
			}
		case tagInlined:
			if cur.root < 0 {
				break
			}
			if spans = d.spans(u, &e, g, spans[:0]); len(spans) > 0 {
				nd := node{die: at, parent: cur.node, callFile: uint32(e.callFile.v), callLine: uint32(e.callLine.v), discriminator: uint32(e.discriminator.v)}
				if cur.node >= 0 {
					nd.depth = c.nodes[cur.node].depth + 1
				}
				here.node = int32(len(c.nodes))
				c.nodes = append(c.nodes, nd)
				for _, s := range spans {
					c.inlined = append(c.inlined, nodeSpan{s, cur.root, here.node})
				}
			}
		}
		if !e.children {
			continue
		}
		if !scope(e.tag) {
			if sib, ok := u.ref(e.sibling); ok && sib > b.off && sib <= u.end {
				b.jump(sib)
				continue
			}
		}
		if depth == maxDepth {
			break
		}
		stack[depth] = cur
		depth++
		cur = here
	}
	c.finish()
	return c
}

func (c *unitCode) finish() {
	slices.SortStableFunc(c.functions, func(a, b rootSpan) int { return cmp.Compare(a.lo, b.lo) })
	slices.SortStableFunc(c.inlined, func(a, b nodeSpan) int { return cmp.Compare(a.root, b.root) })
	for i := 0; i < len(c.inlined); {
		r := &c.roots[c.inlined[i].root]
		r.first = int32(i)
		for i < len(c.inlined) && c.inlined[i].root == c.inlined[r.first].root {
			i++
		}
		r.last = int32(i)
	}
}

// function returns the index of the root that holds addr, -1 if there is none.
func (c *unitCode) function(addr uint64) int32 {
	i := sort.Search(len(c.functions), func(i int) bool { return c.functions[i].lo > addr }) - 1
	for n := 0; i >= 0 && n < 8; i, n = i-1, n+1 {
		if addr < c.functions[i].hi {
			return c.functions[i].root
		}
	}
	return -1
}

// innermost returns the deepest inlined call of the root that holds addr, or -1.
func (c *unitCode) innermost(r int32, addr uint64) int32 {
	best := int32(-1)
	for _, s := range c.inlined[c.roots[r].first:c.roots[r].last] {
		if addr >= s.lo && addr < s.hi && (best < 0 || c.nodes[s.node].depth > c.nodes[best].depth) {
			best = s.node
		}
	}
	return best
}

func (d *Data) keepScope(entry, around uint64) {
	if around != 0 && len(d.scopes) < maxScopesKept {
		d.scopes[entry] = around
	}
}
