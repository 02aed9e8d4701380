package view

import (
	"sync"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/walk"
)

// rowPart is a place that a row is made of, and how much of it counts.
type rowPart struct {
	node          uint32
	start         uint32 // of callers: the place where the stack began
	samples       uint32
	total, before uint64
}

// family is a row that may be shown, and the parts it is made of.
type family struct {
	tableRow
	key             uint32
	most            uint64 // the largest sum of one of its places
	n               int    // parts
	known           uint64 // samples: the base of the remarks
	guessed, coarse uint64 // of known, times 255
	parts           []rowPart
}

// grove is a tree whose nodes are grouped into rows, with its sums.
type grove struct {
	end           []uint32
	parent        []uint32   // for a part, which may have sums in few of the siblings; nil: it is the whole
	after, before *placeSums // before is nil unless two are compared
}

func (g *grove) any(node uint32) bool {
	return g.after.samples(node) > 0 || g.before != nil && g.before.samples(node) > 0
}

// some returns the first place from c on, among the children of up, in which a part has anything;
// if it has nothing there any more, a place behind all of them. For the whole tree it returns c.
func (g *grove) some(c, up uint32) uint32 {
	if g.parent == nil {
		return c
	}
	at := g.after.next(c)
	for at < g.end[up] && g.parent[at] != up {
		at = g.parent[at]
	}
	return at
}

// below returns the children of the given nodes that have anything.
func (g *grove) below(parts []rowPart) (out []rowPart) {
	for _, p := range parts {
		for c := p.node + 1; c < g.end[p.node]; c = g.end[c] {
			if c = g.some(c, p.node); c >= g.end[p.node] {
				break
			}
			if !g.any(c) {
				continue
			}
			next := rowPart{node: c, total: g.after.total(c), samples: g.after.samples(c)}
			if g.before != nil {
				next.before = g.before.total(c)
			}
			out = append(out, next)
		}
	}
	return out
}

// doubts are by place: the shares, times 255, that are guesses and that are coarse.
type doubts struct {
	once            sync.Once
	guessed, coarse []uint8
	inlined         []bool // by symbol
}

func (s *shownTree) doubted() *doubts {
	d := &s.doubts
	d.once.Do(func() {
		n := len(s.tree.Order)
		d.guessed, d.coarse = make([]uint8, n), make([]uint8, n)
		stretches(n, func(_, from, to int) {
			for i := from; i < to; i++ {
				at := s.tree.Order[i]
				all := uint64(s.tree.Samples[at])
				d.guessed[i] = uint8(flame.Share(s.tree.Tally(flame.Heuristic, at), all))
				d.coarse[i] = uint8(flame.Share(s.tree.Tally(flame.Coarse, at), all))
			}
		})
		d.inlined = make([]bool, len(s.tree.Symbols))
		for i, symbol := range s.tree.Symbols {
			d.inlined[i] = symbol.Func != flame.NoFunc && symbol.Kind == walk.KindInlined
		}
	})
	return d
}

// tell returns the remark for a row most of whose samples are less certain than they look.
func (f *family) tell() uint8 {
	switch {
	case f.guessed*2 > f.known*255:
		return remarkGuessed
	case f.coarse*2 > f.known*255:
		return remarkCoarse
	}
	return 0
}

// join adds what another worker found of the same row.
func (f *family) join(o *family) {
	f.n += o.n
	f.total += o.total
	f.self += o.self
	f.before += o.before
	f.samples += o.samples
	f.known += o.known
	f.guessed += o.guessed
	f.coarse += o.coarse
	f.leaf = f.leaf && o.leaf
	if o.most > f.most {
		f.place, f.most = o.place, o.most
	}
}
