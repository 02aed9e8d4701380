package profile

import (
	"cmp"
	"slices"
)

// sorter sorts more samples than memory may hold unpacked: one piece at a time, which it packs.
// Samples that compare as equal keep their order.
type sorter struct {
	room    *room
	compare func(a, b *Sample) int
	piece   []Sample
	runs    []*sampleLog
}

// sortedPiece is how many samples are sorted at once.
const sortedPiece = 1 << 18

func (t *sorter) add(s Sample) {
	if t.piece = append(t.piece, s); len(t.piece) == sortedPiece {
		t.pack()
	}
}

func (t *sorter) pack() {
	if len(t.piece) == 0 {
		return
	}
	// Indices are sorted: samples would go to the heap, two for each comparison.
	order := make([]uint32, len(t.piece))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		if c := t.compare(&t.piece[a], &t.piece[b]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	run := t.room.log()
	for _, i := range order {
		run.add(t.piece[i])
	}
	run.trim()
	t.runs, t.piece = append(t.runs, run), t.piece[:0]
}

// head is the next sample of a run.
type head struct {
	logReader
	run int
}

// each visits all samples in their order. Nothing may be added afterwards.
func (t *sorter) each(visit func(s *Sample)) {
	t.pack()
	t.piece = nil
	// A heap: the first sample in order is on top.
	heads := make([]*head, 0, len(t.runs))
	for i, r := range t.runs {
		h := &head{logReader: r.reader(), run: i}
		h.next()
		heads = append(heads, h)
	}
	before := func(a, b *head) bool {
		c := t.compare(&a.s, &b.s)
		return c < 0 || c == 0 && a.run < b.run
	}
	down := func(i int) {
		for {
			least := i
			for c := 2*i + 1; c <= 2*i+2 && c < len(heads); c++ {
				if before(heads[c], heads[least]) {
					least = c
				}
			}
			if least == i {
				return
			}
			heads[i], heads[least] = heads[least], heads[i]
			i = least
		}
	}
	for i := len(heads)/2 - 1; i >= 0; i-- {
		down(i)
	}
	var s Sample
	for len(heads) > 0 {
		h := heads[0]
		s = h.s
		visit(&s)
		if !h.next() {
			last := len(heads) - 1
			heads[0], heads = heads[last], heads[:last]
		}
		down(0)
	}
}
