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

// A sandwich is one method between all of its callers and all that it calls. Both halves
// are trees made of paths: equal methods below one node are one node. A stack counts once,
// for the outermost frame of the method.

// has is how much of a place counts: of what is shown, and of what that is compared with.
type has struct {
	place         uint32
	after, before uint64
}

// half is one half of a sandwich, or a part of it: a tree in preorder, the heavier first.
// Node 0 is the method.
type half struct {
	depth, origin []uint32 // origin is the heaviest place that a node stands for
	folded        []uint32 // of the nodes that stand for several narrow ones: how many; their origin is nowhere
	after         []uint64
	before        []uint64 // nothing unless two are compared
}

// nowhere is no place.
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

// maxSandwich is how many nodes both halves may have. A tree that somebody made up can have
// as many as it has nodes times its depth.
var maxSandwich int64 = 16 << 20 // tests have less

// sandwiching is what all workers share.
type sandwiching struct {
	ctx           context.Context
	stop          context.CancelCauseFunc // of ctx
	nodes         atomic.Int64            // that were made, in steps of someNodes
	ways          *treeIndex
	sym           []uint32
	after, before *placeSums // before is nil unless two are compared
	seen          stretch    // what is looked at closely
	close, far    has        // what is wide enough there, and elsewhere
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

// maker makes a part of a half: it takes groups of places, of which each is one node of
// the half, and leaves the groups of what lies behind it. They lie one after the other on
// a stack, the next one last, so that they need no more room than the widest node.
type maker struct {
	*sandwiching
	up      bool
	stack   []has
	groups  []group
	out     half
	scratch []has
	bunches []bunch
	bunchOf []int32
	slot    []int32 // by key: its bunch, from 1 on
	met     []int32 // by place: where it is among the callers, from 1 on
}

// group is what one node is made of: it begins at lo on the stack, and the node at x in the
// half.
type group struct {
	lo     int
	x      uint64
	folded uint32 // it is one of several narrow ones, and has nothing behind it
}

// bunch is a group that is being made.
type bunch struct {
	key           uint32
	at, n         int
	after, before uint64
	x             uint64
	narrow        bool
}

// someNodes are made before it is asked whether they are still wanted.
const someNodes = 4096

// visit makes the node of the last group, and all behind it.
func (m *maker) visit(g group, depth uint32) {
	base := len(m.groups)
	m.step(g, depth)
	for len(m.groups) > base {
		next := m.groups[len(m.groups)-1]
		m.groups = m.groups[:len(m.groups)-1]
		m.visit(next, depth+1)
	}
}

// step makes the node of the last group, and puts the groups behind it in its place.
func (m *maker) step(g group, depth uint32) {
	lo := g.lo
	if len(m.out.depth)%someNodes == 0 {
		if m.nodes.Add(someNodes) > maxSandwich {
			m.stop(fmt.Errorf("%w: the callers and callees of this method are more than %d million frames: choose a part of the recording", ErrQuery, maxSandwich>>20))
		}
		if m.ctx.Err() != nil {
			m.stack, m.groups = m.stack[:lo], m.groups[:0]
			return
		}
	}
	if g.folded > 0 {
		m.out.add(depth, nowhere, g.folded, m.stack[lo], m.before != nil)
		m.stack = m.stack[:lo]
		return
	}
	group := m.stack[lo:]
	var after, before uint64
	most := 0
	for i, h := range group {
		after += h.after
		before += h.before
		if b := &group[most]; h.after > b.after || h.after == b.after && h.before > b.before {
			most = i
		}
	}
	m.out.add(depth, group[most].place, 0, has{after: after, before: before}, m.before != nil)
	m.scratch = m.scratch[:0]
	if m.up {
		m.callers(group)
	} else {
		m.callees(group)
	}
	m.stack = m.stack[:lo]
	m.divide(lo, g.x)
}

func (m *maker) callees(group []has) {
	end := m.ways.end
	for _, h := range group {
		for c := h.place + 1; c < end[h.place]; c = end[c] {
			if m.any(c) {
				m.scratch = append(m.scratch, m.of(c))
			}
		}
	}
}

// callers are one from there on where they are the same place.
func (m *maker) callers(group []has) {
	for _, h := range group {
		up := m.ways.parent[h.place]
		if up == 0 {
			continue
		}
		if at := m.met[up]; at > 0 {
			m.scratch[at-1].after += h.after
			m.scratch[at-1].before += h.before
			continue
		}
		m.scratch = append(m.scratch, has{up, h.after, h.before})
		if len(group) > 1 {
			m.met[up] = int32(len(m.scratch))
		}
	}
	for _, h := range m.scratch {
		m.met[h.place] = 0
	}
}

// divide puts what is in scratch on the stack, in groups of one method each, the heaviest
// last, and below them what is too narrow to be seen, as one.
func (m *maker) divide(lo int, x uint64) {
	n := len(m.scratch)
	if n == 0 {
		return
	}
	if n == 1 { // as most are
		h := m.scratch[0]
		g := group{lo: lo, x: x}
		if m.narrow(&bunch{after: h.after, before: h.before}, x) {
			g.folded = 1
		}
		m.stack, m.groups = append(m.stack, h), append(m.groups, g)
		return
	}
	m.bunches, m.bunchOf = m.bunches[:0], m.bunchOf[:0]
	for _, h := range m.scratch {
		key := m.ways.key[m.sym[h.place]]
		if m.slot[key] == 0 {
			m.bunches = append(m.bunches, bunch{key: key})
			m.slot[key] = int32(len(m.bunches))
		}
		b := &m.bunches[m.slot[key]-1]
		b.n++
		b.after += h.after
		b.before += h.before
		m.bunchOf = append(m.bunchOf, int32(key))
	}
	m.order()
	var narrow has
	folded := uint32(0)
	for i := range m.bunches {
		b := &m.bunches[i]
		if b.narrow = m.narrow(b, x); b.narrow {
			narrow.after += b.after
			narrow.before += b.before
			folded++
			n -= b.n
		}
		b.x = x
		if !b.narrow {
			x += m.seen.of(has{after: b.after, before: b.before})
		}
	}
	at := lo
	if folded > 0 {
		m.stack, m.groups = append(m.stack, narrow), append(m.groups, group{lo, x, folded})
		at++
	}
	m.stack = slices.Grow(m.stack, n)[:at+n]
	for i := len(m.bunches) - 1; i >= 0; i-- {
		b := &m.bunches[i]
		m.slot[b.key] = int32(i + 1)
		if b.narrow {
			continue
		}
		m.groups = append(m.groups, group{at, b.x, 0})
		b.at = at
		at += b.n
	}
	for i, h := range m.scratch {
		if b := &m.bunches[m.slot[m.bunchOf[i]]-1]; !b.narrow {
			m.stack[b.at] = h
			b.at++
		}
	}
	for _, b := range m.bunches {
		m.slot[b.key] = 0
	}
}

// order sorts the bunches, the heaviest first. Mostly there are few, and they are in order.
func (m *maker) order() {
	list := m.bunches
	if len(list) > 16 {
		slices.SortFunc(list, func(a, b bunch) int {
			if a.first(&b) {
				return -1
			}
			return 1
		})
		return
	}
	for i := 1; i < len(list); i++ {
		if !list[i].first(&list[i-1]) {
			continue
		}
		b := list[i]
		k := i
		for ; k > 0 && b.first(&list[k-1]); k-- {
			list[k] = list[k-1]
		}
		list[k] = b
	}
}

// first says whether a bunch comes before another.
func (b *bunch) first(o *bunch) bool {
	if b.after != o.after {
		return b.after > o.after
	}
	if b.before != o.before {
		return b.before > o.before
	}
	return b.key < o.key
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
	done  *maker // whose output has it
	at, n int    // from where, how many nodes
}

func (x *sandwiching) task(up bool, depth uint32, places []has, g group) task {
	t := task{up: up, depth: depth, group: places, x: g.x, fold: g.folded, work: 1}
	if g.folded > 0 {
		return t
	}
	for _, h := range places {
		if up {
			t.work += 8 // more or less: how deep it lies
		} else {
			t.work += int(x.ways.end[h.place] - h.place)
		}
	}
	return t
}

// Parts of a half that are too small to be done by another worker, and how many parts there
// are at most.
const (
	smallTask = 1 << 13
	maxTasks  = 128
)

// plan cuts a half in parts that workers make.
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
// context's, or ErrQuery: there are too many nodes.
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

// sandwich makes both halves of a method's, callers first. base is what it is compared
// with, nil: nothing.
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

// frames are the outermost ones of a method.
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

// sandwichMessage answers what lies around a method: of (its number), and filters as for
// counts; base (ns-ns) is a stretch of time to compare with. Two recordings are compared.
// What is too narrow to be seen is folded: see widthOf.
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
