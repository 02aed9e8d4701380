package view

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Limits of a question about rows: how many rows it may open, and how many rows an answer has by
// default.
const (
	maxOpened = 1 << 14
	someRows  = 10_000
	maxRows   = 1 << 18
)

// rowsQuery is a query of the page for rows of the call tree, or of the callers.
type rowsQuery struct {
	callers bool
	of      int32 // the method whose callers are wanted; -1: all methods
	begin   bool  // nothing is open yet
	most    int   // rows
	open    *opened
	place   uint32 // the place that is to be shown, with the rows above it open; 0: none
	in      uint32 // the symbol of the group to open it in; 0: the group with most there
	split   string // thread, process, or empty
}

// groupKey returns the key of a thread's or a process's row. The symbols of groups follow those of
// the tree, and their keys follow the other keys.
func (w *treeIndex) groupKey(s *shownTree, symbol uint32) uint32 {
	return uint32(w.keys) + symbol - uint32(len(s.tree.Symbols))
}

// rowsQuery reads which rows the page asks for:
//
//	way     tree or callers
//	of      the number of the method whose callers are wanted; none: those of all
//	open    the rows that are open, in the order of the table: 0.17_1.5 is symbol 17 and below it 5
//	unfold  a row that has just been opened, counted from 0, may be repeated: what nearly all of it
//	        goes through opens too
//	place   a place of the tree: the rows on the way to it open
//	in      the symbol of the thread or the process that it is shown in; none: the one that has most there
//	split   thread or process: each has a root of its own
//	begin   1: nothing was opened yet, and the rows with most of the total open by themselves
//	most    how many rows
func (w *treeIndex) rowsQuery(s *shownTree, v url.Values) (*rowsQuery, error) {
	q := &rowsQuery{of: -1, begin: v.Get("begin") == "1", open: &opened{}}
	switch way := v.Get("way"); way {
	case "tree":
	case "callers":
		q.callers = true
	default:
		return nil, fmt.Errorf("%w: there are no rows of %q", ErrQuery, way)
	}
	switch q.split = v.Get("split"); q.split {
	case "", "thread", "process":
	default:
		return nil, fmt.Errorf("%w: there is no split by %q", ErrQuery, q.split)
	}
	most, err := number(v, "most", someRows)
	if err != nil {
		return nil, err
	}
	q.most = int(min(most, maxRows))
	of, err := number(v, "of", math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if v.Has("of") {
		if of >= uint64(w.methods) {
			return nil, fmt.Errorf("%w: there are %d methods", ErrQuery, w.methods)
		}
		q.of = int32(of)
	}
	unfold := make(map[uint64]bool)
	for _, text := range v["unfold"] {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%w: unfold is no number", ErrQuery)
		}
		unfold[n] = true
	}
	way := []*opened{q.open}
	if text := v.Get("open"); text != "" {
		for n := uint64(0); ; n++ {
			one, rest, more := strings.Cut(text, "_")
			a, b, _ := strings.Cut(one, ".")
			depth, err1 := strconv.ParseUint(a, 10, 32)
			symbol, err2 := strconv.ParseUint(b, 10, 32)
			if err1 != nil || err2 != nil || depth >= uint64(len(way)) {
				return nil, fmt.Errorf("%w: %q is no open row", ErrQuery, one)
			}
			if n >= maxOpened {
				return nil, fmt.Errorf("%w: more than %d rows are open: close some", ErrQuery, maxOpened)
			}
			key := w.groupKey(s, uint32(symbol))
			if symbol < uint64(len(w.key)) {
				key = w.key[symbol]
			}
			o := way[depth].at(key)
			o.open, o.unfold = true, o.unfold || unfold[n]
			way = append(way[:depth+1], o)
			if !more {
				break
			}
			text = rest
		}
	}
	if v.Has("place") {
		place, err := number(v, "place", 0)
		if err != nil {
			return nil, err
		}
		if place == 0 || place >= uint64(len(w.parent)) || q.callers {
			return nil, fmt.Errorf("%w: place %d is on no way", ErrQuery, place)
		}
		q.place = uint32(place)
	}
	if v.Has("in") {
		in, err := number(v, "in", 0)
		if err != nil {
			return nil, err
		}
		q.in = uint32(min(in, math.MaxUint32))
	}
	return q, nil
}

// Flags of a row: whether it is open, and whether nothing is below it.
const (
	rowOpen = 1 << iota
	rowLeaf
)

// rowsMessage answers with the visible rows of the call tree or of the callers. The filters are
// those of counts, and what they are compared with is as for sandwiches. See rowsQuery.
func rowsMessage(ctx context.Context, r *Recording, v url.Values) ([]byte, error) {
	if err := r.isVersion(v); err != nil {
		return nil, err
	}
	q, base, err := r.compared(v)
	if err != nil {
		return nil, err
	}
	s, err := r.shapeFor(q.rewrite)
	if err != nil {
		return nil, err
	}
	ask, err := r.ways(s).rowsQuery(s, v)
	if err != nil {
		return nil, err
	}
	t, err := r.table(ctx, &q, base, s, ask)
	if err != nil {
		return nil, err
	}
	rows := t.rows
	n := len(rows)
	m := &message{}
	m.u32("depth", n, func(i int) uint32 { return rows[i].depth })
	m.u32("symbol", n, func(i int) uint32 { return rows[i].symbol })
	m.u8("flags", n, func(i int) (flags uint8) {
		if rows[i].open {
			flags |= rowOpen
		}
		if rows[i].leaf {
			flags |= rowLeaf
		}
		return flags
	})
	m.u8("remark", n, func(i int) uint8 { return rows[i].remark })
	m.i32("place", n, func(i int) int32 { return int32(rows[i].place) })
	m.f64("self", n, func(i int) float64 { return float64(rows[i].self) })
	m.f64("total", n, func(i int) float64 { return float64(rows[i].total) })
	if base != nil {
		m.f64("before", n, func(i int) float64 { return float64(rows[i].before) })
	}
	m.u32("samples", n, func(i int) uint32 { return rows[i].samples })
	return m.finish(map[string]any{"more": t.more, "shown": t.shown})
}

// show opens the rows on the way to a place, except the last one, which is marked as wanted.
func (o *opened) show(w *treeIndex, s *shownTree, place uint32) {
	var way []uint32
	for at := place; at > 0; at = w.parent[at] {
		way = append(way, w.key[s.sym[at]])
	}
	for i, key := range slices.Backward(way) {
		o = o.at(key)
		o.open = o.open || i > 0
	}
	o.wanted = true
}

// table makes the rows that are asked for; base may be nil.
func (r *Recording) table(ctx context.Context, q, base *Query, s *shownTree, ask *rowsQuery) (*table, error) {
	var g *groups
	if ask.split != "" && base == nil {
		g = r.groupsOf(s, ask.split)
	}
	var t *table
	err := r.lend(ctx, q, s, func(k *remembered, after *placeSums) error {
		if base == nil {
			t = r.newTable(ctx, s, after, nil)
			if g != nil {
				t.split = r.newSplit(q, g, k)
			}
			return t.make(ask)
		}
		return r.totalled(ctx, base, s, func(before *placeSums) error {
			t = r.newTable(ctx, s, after, before)
			return t.make(ask)
		})
	})
	return t, err
}

// make makes the rows. The error is the context's, or ErrQuery if too many rows are open.
func (t *table) make(ask *rowsQuery) error {
	t.callers, t.begin, t.most = ask.callers, ask.begin, ask.most
	if t.split != nil && ask.callers {
		t.outer = make([]int32, len(t.ways.parent))
	}
	switch {
	case ask.place > 0 && t.split != nil:
		t.reveal(ask.place, ask.in, ask.open)
	case ask.place > 0:
		ask.open.show(t.ways, t.shape, ask.place)
	}
	switch {
	case t.err != nil:
	case ask.callers && ask.of >= 0:
		t.callersOf(ask.of, ask.open)
	case ask.callers:
		t.callersOfAll(ask.open)
	case t.split != nil:
		t.groupCalls(ask.open)
	default:
		t.calls(ask.open)
	}
	if t.split != nil && ask.callers {
		t.insert(ask.of)
	}
	if t.err == nil {
		t.err = t.ctx.Err()
	}
	return t.err
}
