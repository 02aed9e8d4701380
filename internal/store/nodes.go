package store

import (
	"encoding/binary"
	"math/bits"

	"github.com/candid-profiler/candid/internal/profile"
)

// A block of nodes of version 2: the index of the first, how many follow, and four columns. The
// first says where each node's parent is: 0 just before it, 1 before the block, else so many nodes
// before it. The second has the parents before the block, each as the difference to the last one,
// the third the frames as a predictor makes them small, and the last those that it did not expect.
func (f *fresh) encodeNodes(c counts) []byte {
	if len(f.nodes) == 0 {
		return nil
	}
	b := binary.AppendUvarint(nil, uint64(c.nodes))
	b = binary.AppendUvarint(b, uint64(len(f.nodes)))
	var where, before, frames, others []byte
	guess := newPredictor(len(f.nodes))
	old := uint32(0)
	for i, n := range f.nodes {
		at := c.nodes + uint32(i)
		above := lostEntry
		switch {
		case n.Parent < c.nodes:
			where = append(where, 1)
			before = binary.AppendUvarint(before, zigzag(int64(n.Parent)-int64(old)))
			old = n.Parent
		case n.Parent == at-1:
			where, above = append(where, 0), f.nodes[i-1].Frame
		default:
			where, above = binary.AppendUvarint(where, uint64(at-n.Parent)), f.nodes[n.Parent-c.nodes].Frame
		}
		code, far := guess.encode(above, n.Frame)
		if frames = append(frames, code); code == other {
			others = binary.AppendUvarint(others, far)
		}
	}
	for _, c := range [][]byte{where, before, frames, others} {
		b = appendColumn(b, c)
	}
	return b
}

func (f *fresh) decodeNodes(raw []byte) (first counts, err error) {
	c := cursor{b: raw}
	first.nodes = c.index()
	n := c.count()
	where, before, frames, others := c.column(), c.column(), c.bytes(), c.column()
	if c.bad || n != len(frames) || uint64(first.nodes)+uint64(n) >= 1<<32 {
		return first, errCut
	}
	guess := newPredictor(n)
	old := uint32(0)
	list := make([]profile.Node, 0, n)
	for i := range n {
		at, v, above := first.nodes+uint32(i), profile.Node{}, lostEntry
		switch d := where.number(); {
		case d == 1:
			old += uint32(before.signed())
			v.Parent = old
			if v.Parent >= first.nodes {
				return first, errCut
			}
		case d == 0 && i > 0:
			v.Parent, above = at-1, list[i-1].Frame
		case d <= uint64(i) && d > 0:
			v.Parent, above = at-uint32(d), list[i-int(d)].Frame
		default:
			return first, errCut
		}
		if frames[i] > other {
			return first, errCut
		}
		v.Frame = guess.decode(above, frames[i], &others)
		list = append(list, v)
	}
	if where.bad || before.bad || others.bad {
		return first, errCut
	}
	f.nodes = list
	return first, nil
}

// predictor turns the frames of nodes into small numbers: code mostly calls what it called before, or
// what is entirely new. It has the last frames that were below each frame, in a table in which frames
// may share a place.
type predictor struct {
	last  [][ways]uint32
	shift int
	frame uint32 // the last one
	next  uint32 // after the highest one
}

// The codes are the place among the last frames below the same frame, and these.
const (
	ways           = 8
	next           = ways     // the frame after the highest one
	other          = ways + 1 // the difference to the last one is in another column
	mostPredictors = 1 << 15  // 1 MB
)

func newPredictor(nodes int) *predictor {
	log2 := bits.Len(uint(min(max(nodes, 16), mostPredictors-1)))
	return &predictor{last: make([][ways]uint32, 1<<log2), shift: 32 - log2}
}

func (p *predictor) encode(above, frame uint32) (code byte, far uint64) {
	l := &p.last[above*0x9E3779B1>>p.shift]
	code = other
	if frame == p.next {
		code = next
	}
	for i, f := range l {
		if f == frame {
			code = byte(i)
			break
		}
	}
	far = zigzag(int64(frame) - int64(p.frame))
	p.saw(l, code, frame)
	return code, far
}

func (p *predictor) decode(above uint32, code byte, far *cursor) (frame uint32) {
	l := &p.last[above*0x9E3779B1>>p.shift]
	switch code {
	case other:
		frame = uint32(int64(p.frame) + far.signed())
	case next:
		frame = p.next
	default:
		frame = l[code]
	}
	p.saw(l, code, frame)
	return frame
}

// saw moves a frame to the front.
func (p *predictor) saw(l *[ways]uint32, code byte, frame uint32) {
	copy(l[1:], l[:min(code, ways-1)])
	l[0], p.frame = frame, frame
	if frame >= p.next {
		p.next = frame + 1
	}
}
