package store

import (
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// decodeNames1 appends a block of names of version 1 to f, and returns the indices of its first
// entries. Each list is stored as columns.
func (f *fresh) decodeNames1(raw []byte) (first counts, err error) {
	c := cursor{b: raw}
	first = counts{strings: c.index(), fns: c.index(), frames: c.index()}
	n := c.count()
	lengths := c.column()
	texts := string(c.bytes())
	for range n {
		l := lengths.number()
		if l > uint64(len(texts)) || lengths.bad {
			return first, errCut
		}
		f.strings = append(f.strings, texts[:l])
		texts = texts[l:]
	}
	n = c.count()
	var col [6]cursor
	for i := range col {
		col[i] = c.column()
	}
	before := fn{}
	for range n {
		v := fn{
			name: before.name + uint32(col[0].signed()), raw: uint32(col[1].signed()), signature: uint32(col[2].signed()),
			module: before.module + uint32(col[3].signed()), file: before.file + uint32(col[4].signed()),
		}
		start := col[5].number()
		v.start, v.noName = int32(unzigzag(start>>1)), start&1 != 0
		f.fns = append(f.fns, v)
		before = v
	}
	n = c.count()
	fns, lines, what := c.column(), c.column(), c.bytes()
	if c.bad || len(what) != 3*n {
		return first, errCut
	}
	last := uint32(0)
	for i := range n {
		last += uint32(fns.signed())
		v := frame{fn: last, line: int32(lines.signed()), kind: walk.Kind(what[3*i]), prov: walk.Provenance(what[3*i+1]), flags: walk.FrameFlags(what[3*i+2])}
		if v.kind >= walk.NumKinds || v.prov > walk.Heuristic {
			return first, errCut
		}
		f.frames = append(f.frames, v)
	}
	for i := range col {
		c.bad = c.bad || col[i].bad
	}
	if c.bad || fns.bad || lines.bad {
		return first, errCut
	}
	return first, nil
}

// decodeNodes1 reads a block of nodes of version 1: the index of the first, then how far before each its
// parent is, and its frame.
func (f *fresh) decodeNodes1(raw []byte) (first counts, err error) {
	c := cursor{b: raw}
	first.nodes = c.index()
	n := c.count()
	parents, frames := c.column(), c.column()
	last := uint32(0)
	for i := range n {
		at := uint64(first.nodes) + uint64(i)
		before := parents.number()
		last += uint32(frames.signed())
		if before >= at || at >= 1<<32 || parents.bad || frames.bad {
			return first, errCut
		}
		f.nodes = append(f.nodes, profile.Node{Parent: uint32(at - before - 1), Frame: last})
	}
	if c.bad {
		return first, errCut
	}
	return first, nil
}
