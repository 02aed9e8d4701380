package view

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// A sandwich is one method between all of its callers and all that it calls. Both halves are trees
// made of paths: equal methods below one node are one node. A stack counts once, for the outermost
// frame of the method.

// has is how much of a place counts: in what is shown, and in what that is compared with.
type has struct {
	place         uint32
	after, before uint64
}

// half is one half of a sandwich, or a part of it: a tree in preorder, the heavier nodes first.
// Node 0 is the method.
type half struct {
	depth, origin []uint32 // origin is the heaviest place that a node stands for
	folded        []uint32 // how many narrow nodes a node stands for, 0 for most; the origin of a folded one is nowhere
	after         []uint64
	before        []uint64 // empty unless two are compared
}

// nowhere means no place.
const nowhere = ^uint32(0)

func (h *half) join(o *half, from, to int) {
	h.depth, h.origin, h.folded = append(h.depth, o.depth[from:to]...), append(h.origin, o.origin[from:to]...), append(h.folded, o.folded[from:to]...)
	h.after = append(h.after, o.after[from:to]...)
	if o.before != nil {
		h.before = append(h.before, o.before[from:to]...)
	}
}

func (h *half) add(depth, origin, folded uint32, sum has, compared bool) {
	h.depth, h.origin, h.folded = append(h.depth, depth), append(h.origin, origin), append(h.folded, folded)
	h.after = append(h.after, sum.after)
	if compared {
		h.before = append(h.before, sum.before)
	}
}

// maxSandwich is how many nodes both halves may have together. A tree that somebody crafted can
// have as many as its nodes times its depth.
var maxSandwich int64 = 16 << 20 // tests have less

// sandwiching is the state that all workers share.
type sandwiching struct {
	ctx           context.Context
	stop          context.CancelCauseFunc // of ctx
	nodes         atomic.Int64            // how many were made, in steps of someNodes
	ways          *treeIndex
	sym           []uint32
	after, before *placeSums // before is nil unless two are compared
	seen          stretch    // the range that is zoomed to
	close, far    has        // the least weight that is wide enough there, and elsewhere
}

func (x *sandwiching) any(place uint32) bool {
	return x.after.samples(place) > 0 || x.before != nil && x.before.samples(place) > 0
}

func (x *sandwiching) of(place uint32) has {
	h := has{place: place, after: x.after.total(place)}
	if x.before != nil {
		h.before = x.before.total(place)
	}
	return h
}

func (x *sandwiching) maker() *maker {
	if m, ok := x.ways.makers.Get().(*maker); ok {
		*m = maker{sandwiching: x, slot: m.slot, met: m.met, stack: m.stack[:0], scratch: m.scratch[:0]}
		return m
	}
	return &maker{sandwiching: x, slot: make([]int32, x.ways.keys), met: make([]int32, len(x.ways.parent))}
}

// task is a part of a half, in its order: a group that is still to be done, or a node.
type task struct {
	up    bool
	depth uint32
	group []has
	x     uint64
	fold  uint32
	work  int
	done  *maker // the maker whose output has it
	at, n int    // the first node in that output, and how many
}

func (x *sandwiching) task(up bool, depth uint32, places []has, g group) task {
	t := task{up: up, depth: depth, group: places, x: g.x, fold: g.folded, work: 1}
	if g.folded > 0 {
		return t
	}
	for _, h := range places {
		if up {
			t.work += 8 // a rough guess of its depth
		} else {
			t.work += int(x.ways.end[h.place] - h.place)
		}
	}
	return t
}

// The work of the smallest part of a half that another worker gets, and the maximum number of
// parts.
const (
	smallTask = 1 << 13
	maxTasks  = 128
)

// plan divides a half into parts that workers make.
func (x *sandwiching) plan(up bool, frames []has) []task {
	tasks := []task{x.task(up, 0, frames, group{})}
	m := x.maker()
	m.up = up
	all := tasks[0].work
	for len(tasks) < maxTasks {
		most := 0
		for i := range tasks {
			if tasks[i].work > tasks[most].work {
				most = i
			}
		}
		t := tasks[most]
		if t.work < smallTask || t.work*8*runtime.GOMAXPROCS(0) < all {
			break
		}
		m.stack, m.groups = append(m.stack[:0], t.group...), m.groups[:0]
		at := len(m.out.depth)
		m.step(group{x: t.x, folded: t.fold}, t.depth)
		parts := []task{{done: m, at: at, n: len(m.out.depth) - at}}
		end := len(m.stack)
		for _, g := range slices.Backward(m.groups) {
			parts = append(parts, x.task(up, t.depth+1, slices.Clone(m.stack[g.lo:end]), g))
			end = g.lo
		}
		tasks = slices.Replace(tasks, most, most+1, parts...)
	}
	return tasks
}

// run makes both halves, callers first, in parts that follow each other. The error is the
// context's, or ErrQuery if there are too many nodes.
func (x *sandwiching) run(frames []has) (halves [2]half, err error) {
	if len(frames) == 0 {
		for i := range halves {
			halves[i].add(0, 0, 0, has{}, x.before != nil)
		}
		return halves, nil
	}
	var makers []*maker
	defer func() {
		for _, m := range makers {
			m.sandwiching = nil
			x.ways.makers.Put(m)
		}
	}()
	var plans [2][]task
	var todo []*task
	for i := range plans {
		plans[i] = x.plan(i == 0, frames)
		for k := range plans[i] {
			if plans[i][k].done == nil {
				todo = append(todo, &plans[i][k])
			}
		}
	}
	slices.SortStableFunc(todo, func(a, b *task) int { return cmp.Compare(b.work, a.work) })
	for _, plan := range plans {
		for _, t := range plan {
			if t.done != nil && !slices.Contains(makers, t.done) {
				makers = append(makers, t.done)
			}
		}
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(todo)) {
		wg.Add(1)
		m := x.maker()
		makers = append(makers, m)
		go func() {
			defer wg.Done()
			for x.ctx.Err() == nil {
				k := int(next.Add(1)) - 1
				if k >= len(todo) {
					return
				}
				t := todo[k]
				m.up, t.done, t.at = t.up, m, len(m.out.depth)
				m.stack = append(m.stack[:0], t.group...)
				m.visit(group{x: t.x, folded: t.fold}, t.depth)
				t.n = len(m.out.depth) - t.at
			}
		}()
	}
	wg.Wait()
	if x.ctx.Err() != nil {
		return halves, context.Cause(x.ctx)
	}
	for i := range plans {
		for _, t := range plans[i] {
			halves[i].join(&t.done.out, t.at, t.at+t.n)
		}
	}
	return halves, nil
}

// sandwich makes both halves for a method, callers first. base is what it is compared with, nil:
// nothing.
func (r *Recording) sandwich(ctx context.Context, q, base *Query, method int32, w width) ([2]half, error) {
	none := [2]half{}
	s, err := r.shapeFor(q.rewrite)
	if err != nil {
		return none, err
	}
	x := &sandwiching{ways: r.ways(s), sym: s.sym}
	x.ctx, x.stop = context.WithCancelCause(ctx)
	defer x.stop(nil)
	if int(method) >= x.ways.methods {
		return none, fmt.Errorf("%w: there are %d methods", ErrQuery, x.ways.methods)
	}
	halves := none
	err = r.bothTotalled(ctx, q, base, s, func(after, before *placeSums) (err error) {
		x.after, x.before = after, before
		frames := x.frames(method)
		x.look(w, frames)
		halves, err = x.run(frames)
		return err
	})
	return halves, err
}

// frames returns the outermost frames of a method.
func (x *sandwiching) frames(method int32) (frames []has) {
	for i := uint32(1); int(i) < len(x.ways.end); {
		switch {
		case !x.any(i):
			i = x.ways.end[i]
		case x.ways.method[x.sym[i]] == method:
			frames = append(frames, x.of(i))
			i = x.ways.end[i]
		default:
			i++
		}
	}
	return frames
}

// sandwichMessage answers with what lies around a method: of (its number), and filters as for
// counts; base (ns-ns) is a range of time to compare with. A pair of recordings is compared by
// itself. Nodes that are too narrow to be seen are folded: see widthOf.
func sandwichMessage(ctx context.Context, r *Recording, v url.Values) ([]byte, error) {
	if err := r.isVersion(v); err != nil {
		return nil, err
	}
	of, err := number(v, "of", 0)
	if err != nil || of > math.MaxInt32 {
		return nil, fmt.Errorf("%w: of is no method's number", ErrQuery)
	}
	q, base, err := r.compared(v)
	if err != nil {
		return nil, err
	}
	w, err := widthOf(v)
	if err != nil {
		return nil, err
	}
	halves, err := r.sandwich(ctx, &q, base, int32(of), w)
	if err != nil {
		return nil, err
	}
	m := &message{}
	for i, name := range [2]string{"callers.", "callees."} {
		h := &halves[i]
		n := len(h.depth)
		m.u32(name+"depth", n, func(k int) uint32 { return h.depth[k] })
		m.u32(name+"origin", n, func(k int) uint32 { return h.origin[k] })
		m.u32(name+"folded", n, func(k int) uint32 { return h.folded[k] })
		m.f64(name+"after", n, func(k int) float64 { return float64(h.after[k]) })
		if base != nil {
			m.f64(name+"before", n, func(k int) float64 { return float64(h.before[k]) })
		}
	}
	return m.finish(map[string]int{"method": int(of)})
}
