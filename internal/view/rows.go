package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// The call tree and the callers are tables of rows that open. A row is a method on one path: from
// the thread's first frame down, or from where samples ended up through the callers. Places that
// differ only in the kind of code are one row. Only what is below open rows is computed.

// tableRow is one line of such a table.
type tableRow struct {
	depth, symbol uint32 // symbol is one of those that the row stands for
	place         uint32 // the heaviest place that the row stands for; nowhere: none
	samples       uint32 // total
	self, total   uint64
	before        uint64 // total of the query it is compared with
	remark        uint8
	open, leaf    bool // a leaf has nothing below it
}

// heavier compares two rows below the same row, for sorting: the heavier one comes first.
func (a *tableRow) heavier(b *tableRow) int {
	return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(b.before, a.before), cmp.Compare(b.samples, a.samples), cmp.Compare(a.symbol, b.symbol))
}

// opened is a row that is open, or that is wanted, and those below it.
type opened struct {
	open, unfold, wanted bool
	below                map[uint32]*opened // by key
}

// at returns the row of a key below o, and creates it if need be.
func (o *opened) at(key uint32) *opened {
	next := o.below[key]
	if next == nil {
		if o.below == nil {
			o.below = make(map[uint32]*opened)
		}
		next = &opened{}
		o.below[key] = next
	}
	return next
}

// Which rows open by themselves: in a fresh table those that most of the time goes through, as far
// as they fit a page, and below a row that somebody opens those that nearly all of it goes through.
const (
	beginRows, beginShare   = 40, 0.2
	unfoldRows, unfoldShare = 200, 0.9
)

// maxRowWork is how many frames may be visited for one table: a tree that somebody crafted can have
// as many as its nodes times its depth.
var maxRowWork = 1 << 28 // tests have less

// table makes the rows of one table.
type table struct {
	ctx     context.Context
	shape   *shownTree
	ways    *treeIndex
	doubts  *doubts
	whole   *grove
	part    *grove // what is being grouped: the whole, or a part of it
	callers bool
	begin   bool
	most    int    // rows
	all     uint64 // what there is in all
	left    int    // how many rows may still open by themselves
	rows    []tableRow
	more    bool // there are more rows
	shown   int  // the row that is wanted, -1: none
	work    int
	looked  int     // the work done at the last check whether the rows are still wanted
	slot    []int32 // by key: its family, from 1 on
	split   *split  // nil: all threads together
	outer   []int32 // by place, of callers that end in groups: the pending row of the stacks that began there, from 1 on
	err     error
}

func (r *Recording) newTable(ctx context.Context, s *shownTree, after, before *placeSums) *table {
	w := r.ways(s)
	g := &grove{end: w.end, after: after, before: before}
	return &table{ctx: ctx, shape: s, ways: w, doubts: s.doubted(), whole: g, part: g, all: after.total(0), left: beginRows, shown: -1, slot: make([]int32, w.keys)}
}

// wanted counts more work, and reports whether to go on.
func (t *table) wanted(work int) bool {
	if t.work += work; t.work-t.looked >= step && t.err == nil {
		t.looked = t.work
		if t.err = t.ctx.Err(); t.err == nil && t.work > maxRowWork {
			t.err = fmt.Errorf("%w: too much is open to be added up: close some rows", ErrQuery)
		}
	}
	return t.err == nil
}

func (t *table) symbol(p *rowPart) uint32 { return t.shape.sym[p.node] }

// families groups parts by method, the heaviest first.
func (t *table) families(parts []rowPart, depth uint32) []family {
	if len(parts) == 0 || !t.wanted(len(parts)) {
		return nil
	}
	var list []family
	for i := range parts {
		list = t.add(list, t.slot, &parts[i], depth)
	}
	sorted := make([]rowPart, len(parts))
	at := 0
	for i := range list {
		list[i].parts = sorted[at : at : at+list[i].n]
		at += list[i].n
	}
	for _, p := range parts {
		f := &list[t.slot[t.ways.key[t.symbol(&p)]]-1]
		f.parts = append(f.parts, p)
	}
	t.sort(list, t.slot)
	return list
}

func (t *table) sort(list []family, slot []int32) {
	for i := range list {
		slot[list[i].key] = 0
	}
	slices.SortFunc(list, func(a, b family) int { return a.heavier(&b.tableRow) })
}

// add adds a part to its row in list. slot has the row's index by key, from 1 on.
func (t *table) add(list []family, slot []int32, p *rowPart, depth uint32) []family {
	g := t.part
	place := p.node
	symbol := t.shape.sym[place]
	key := t.ways.key[symbol]
	if slot[key] == 0 {
		list = append(list, family{key: key, tableRow: tableRow{depth: depth, symbol: symbol, place: place, leaf: true}})
		slot[key] = int32(len(list))
	}
	f := &list[slot[key]-1]
	f.n++
	f.total += p.total
	f.samples += p.samples
	f.before += p.before
	if total := g.after.total(p.node); total > f.most {
		f.place, f.most = place, total
	}
	// If others are inlined into a compiled method, only its own share is coarse.
	known, rough := p.samples, depth == 0
	if t.callers {
		if t.ways.parent[p.node] == 0 && t.split == nil {
			f.self += p.total
		} else {
			f.leaf = false
		}
	} else {
		self := g.after.self(p.node)
		f.self += self
		rough = self > 0 || t.doubts.inlined[f.symbol]
		f.leaf = f.leaf && g.after.samples(p.node) == g.after.count(p.node)
		if g.before != nil {
			f.leaf = f.leaf && g.before.samples(p.node) == g.before.count(p.node)
			if known == 0 {
				known = g.before.samples(p.node)
			}
		}
	}
	f.known += uint64(known)
	f.guessed += uint64(known) * uint64(t.doubts.guessed[place])
	if rough {
		f.coarse += uint64(known) * uint64(t.doubts.coarse[place])
	}
	return list
}

// below returns the parts of the rows below a row.
func (t *table) below(parts []rowPart) (out []rowPart) {
	if !t.callers {
		return t.part.below(parts)
	}
	for _, p := range parts {
		if up := t.ways.parent[p.node]; up > 0 {
			p.node = up
			out = append(out, p)
		}
	}
	return out
}

// show adds sibling rows, and what is below those that are open. unfold is how many more rows open
// because the row above was opened, and over is the total of that row.
func (t *table) show(list []family, among *opened, unfold int, over uint64) {
	for i := range list {
		f := &list[i]
		if t.err != nil {
			return
		}
		if len(t.rows) >= t.most {
			t.more = true
			return
		}
		o := among.below[f.key]
		if o == nil {
			o = &opened{}
		}
		further := 0
		switch {
		case o.unfold:
			further = unfoldRows
		case i == 0 && unfold > 0 && float64(f.total) >= unfoldShare*float64(over):
			further = unfold - 1
		}
		f.open = (o.open || further > 0 || t.opens(f)) && !f.leaf
		if o.wanted {
			t.shown = len(t.rows)
		}
		f.remark = f.tell()
		t.rows = append(t.rows, f.tableRow)
		if f.open {
			t.show(t.underneath(f), o, further, f.total)
		}
		f.parts = nil
	}
}

// underneath returns the rows below one.
func (t *table) underneath(f *family) []family {
	switch {
	case t.split == nil:
	case !t.callers && f.depth == 0:
		return t.inGroup(f)
	case t.callers:
		t.outermost(f)
	}
	return t.families(t.below(f.parts), f.depth+1)
}

// opens reports whether a row of a fresh table opens by itself.
func (t *table) opens(f *family) bool {
	if !t.begin || t.left == 0 || float64(f.total) < beginShare*float64(t.all) {
		return false
	}
	t.left--
	return true
}

// calls makes the rows of the call tree.
func (t *table) calls(open *opened) {
	t.show(t.families(t.below([]rowPart{{}}), 0), open, 0, 0)
}

// callersOf makes the rows of a method's callers. A stack counts once, for the innermost frame of
// the method.
func (t *table) callersOf(method int32, open *opened) {
	type frame struct {
		end  uint32
		part int
	}
	var inside []frame // frames of the method on the current path
	var parts []rowPart
	g, w := t.whole, t.ways
	next := uint32(0)
	for i := uint32(1); int(i) < len(w.end); {
		if i >= next {
			if t.err = t.ctx.Err(); t.err != nil {
				return
			}
			next = i + step
		}
		if !g.any(i) {
			i = w.end[i]
			continue
		}
		for len(inside) > 0 && inside[len(inside)-1].end <= i {
			inside = inside[:len(inside)-1]
		}
		if w.method[t.shape.sym[i]] == method {
			inside = append(inside, frame{w.end[i], len(parts)})
			parts = append(parts, rowPart{node: i, start: i})
		}
		if len(inside) > 0 {
			p := &parts[inside[len(inside)-1].part]
			p.total += g.after.self(i)
			p.samples += g.after.count(i)
			if g.before != nil {
				p.before += g.before.self(i)
			}
		}
		i++
	}
	parts = slices.DeleteFunc(parts, func(p rowPart) bool { return p.samples == 0 && p.before == 0 })
	t.all = 0
	for i := range parts {
		t.all += parts[i].total
	}
	t.show(t.families(parts, 0), open, 0, 0)
}

// callersOfAll makes the rows of the callers of all methods in which samples ended. There may be as
// many parts as there are places, so parts are collected only for rows that are open.
func (t *table) callersOfAll(open *opened) {
	n := len(t.ways.end)
	lists := make([][]family, workersFor(n))
	stretches(n, func(worker, from, to int) {
		slot := t.slot
		if worker > 0 {
			slot = make([]int32, len(t.slot))
		}
		var list []family
		t.ends(from, to, func(p *rowPart) { list = t.add(list, slot, p, 0) })
		lists[worker] = list
	})
	if t.err = t.ctx.Err(); t.err != nil {
		return
	}
	list := lists[0]
	for _, more := range lists[1:] {
		for i := range more {
			f := &more[i]
			if t.slot[f.key] == 0 {
				list = append(list, *f)
				t.slot[f.key] = int32(len(list))
				continue
			}
			list[t.slot[f.key]-1].join(f)
		}
	}
	t.sort(list, t.slot)
	some := false
	for i := range list {
		f := &list[i]
		o := open.below[f.key]
		if o != nil && (o.open || o.unfold) || t.begin && float64(f.total) >= beginShare*float64(t.all) {
			t.slot[f.key] = int32(i + 1)
			f.parts = make([]rowPart, 0, f.n)
			some = true
		}
	}
	if some {
		t.ends(1, n, func(p *rowPart) {
			if at := t.slot[t.ways.key[t.symbol(p)]]; at > 0 {
				f := &list[at-1]
				f.parts = append(f.parts, *p)
			}
		})
		for i := range list {
			t.slot[list[i].key] = 0
		}
		t.err = t.ctx.Err()
	}
	t.show(list, open, 0, 0)
}

// ends calls f for the places from from up to to in which samples ended, except the root.
func (t *table) ends(from, to int, f func(p *rowPart)) {
	after, before := t.whole.after, t.whole.before
	var p rowPart
	first, last := t.ways.ranks.of(uint32(max(from, 1))), t.ways.ranks.of(uint32(to))
	for k := first; k < last; k++ {
		if k%step == 0 && t.ctx.Err() != nil {
			return
		}
		i := t.ways.ends[k]
		if after.count(i) == 0 && (before == nil || before.count(i) == 0) {
			continue
		}
		p = rowPart{node: i, start: i, samples: after.count(i), total: after.self(i)}
		if before != nil {
			p.before = before.self(i)
		}
		f(&p)
	}
}
