package view

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/url"
	"runtime"
	"slices"
	"strings"
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
	after         []uint64
	before        []uint64 // nothing unless two are compared
}

func (h *half) grow(n int, compared bool) {
	h.depth, h.origin, h.after = slices.Grow(h.depth, n), slices.Grow(h.origin, n), slices.Grow(h.after, n)
	if compared {
		h.before = slices.Grow(h.before, n)
	}
}

func (h *half) part(from, to int) half {
	p := half{depth: h.depth[from:to], origin: h.origin[from:to], after: h.after[from:to]}
	if h.before != nil {
		p.before = h.before[from:to]
	}
	return p
}

// maxSandwich is how many nodes both halves may have. A tree that somebody made up can have
// as many as it has nodes times its depth.
var maxSandwich int64 = 16 << 20 // tests have less

// sandwiching is what all workers share.
type sandwiching struct {
	ctx           context.Context
	stop          context.CancelCauseFunc // of ctx
	nodes         atomic.Int64            // that were made, in steps of someNodes
	ways          *ways
	sym           []uint32
	after, before *placeSums // before is nil unless two are compared
}

func (x *sandwiching) any(place uint32) bool {
	return x.after.samples[place] > 0 || x.before != nil && x.before.samples[place] > 0
}

func (x *sandwiching) of(place uint32) has {
	h := has{place: place, after: x.after.total[place]}
	if x.before != nil {
		h.before = x.before.total[place]
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
	groups  []int // where each begins on the stack
	out     half
	scratch []has
	bunches []bunch
	bunchOf []int32
	slot    []int32 // by key: its bunch, from 1 on
	seen    []int32 // by place: where it is among the callers, from 1 on
}

// bunch is a group that is being made.
type bunch struct {
	key           uint32
	at, n         int
	after, before uint64
}

// someNodes are made before it is asked whether they are still wanted.
const someNodes = 4096

// visit makes the node of the last group, and all behind it.
func (m *maker) visit(lo int, depth uint32) {
	base := len(m.groups)
	m.step(lo, depth)
	for len(m.groups) > base {
		next := m.groups[len(m.groups)-1]
		m.groups = m.groups[:len(m.groups)-1]
		m.visit(next, depth+1)
	}
}

// step makes the node of the last group, and puts the groups behind it in its place.
func (m *maker) step(lo int, depth uint32) {
	if len(m.out.depth)%someNodes == 0 {
		if m.nodes.Add(someNodes) > maxSandwich {
			m.stop(fmt.Errorf("%w: the callers and callees of this method are more than %d million frames: choose a part of the recording", ErrQuery, maxSandwich>>20))
		}
		if m.ctx.Err() != nil {
			m.stack, m.groups = m.stack[:lo], m.groups[:0]
			return
		}
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
	m.out.depth, m.out.origin, m.out.after = append(m.out.depth, depth), append(m.out.origin, group[most].place), append(m.out.after, after)
	if m.before != nil {
		m.out.before = append(m.out.before, before)
	}
	m.scratch = m.scratch[:0]
	if m.up {
		m.callers(group)
	} else {
		m.callees(group)
	}
	m.stack = m.stack[:lo]
	m.divide(lo)
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
		if at := m.seen[up]; at > 0 {
			m.scratch[at-1].after += h.after
			m.scratch[at-1].before += h.before
			continue
		}
		m.scratch = append(m.scratch, has{up, h.after, h.before})
		if len(group) > 1 {
			m.seen[up] = int32(len(m.scratch))
		}
	}
	for _, h := range m.scratch {
		m.seen[h.place] = 0
	}
}

// divide puts what is in scratch on the stack, in groups of one method each, the heaviest
// last.
func (m *maker) divide(lo int) {
	n := len(m.scratch)
	if n == 0 {
		return
	}
	if n == 1 { // as most are
		m.stack, m.groups = append(m.stack, m.scratch[0]), append(m.groups, lo)
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
	m.stack = slices.Grow(m.stack, n)[:lo+n]
	at := lo
	for i := len(m.bunches) - 1; i >= 0; i-- {
		b := &m.bunches[i]
		m.slot[b.key] = int32(i + 1)
		m.groups = append(m.groups, at)
		b.at = at
		at += b.n
	}
	for i, h := range m.scratch {
		b := &m.bunches[m.slot[m.bunchOf[i]]-1]
		m.stack[b.at] = h
		b.at++
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
	return &maker{sandwiching: x, slot: make([]int32, x.ways.keys), seen: make([]int32, len(x.ways.parent))}
}

// task is a part of a half, in its order: a group that is still to be done, or a node.
type task struct {
	up    bool
	depth uint32
	group []has
	work  int
	done  *maker // whose output has it
	at, n int    // from where, how many nodes
}

func (x *sandwiching) task(up bool, depth uint32, group []has) task {
	t := task{up: up, depth: depth, group: group}
	for _, h := range group {
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
	tasks := []task{x.task(up, 0, frames)}
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
		m.step(0, t.depth)
		parts := []task{{done: m, at: at, n: len(m.out.depth) - at}}
		end := len(m.stack)
		for _, lo := range slices.Backward(m.groups) {
			parts = append(parts, x.task(up, t.depth+1, slices.Clone(m.stack[lo:end])))
			end = lo
		}
		tasks = slices.Replace(tasks, most, most+1, parts...)
	}
	return tasks
}

// run makes both halves, callers first, in parts that follow each other. The error is the
// context's, or ErrQuery: there are too many nodes.
func (x *sandwiching) run(frames []has) (halves [2][]half, err error) {
	if len(frames) == 0 {
		none := []half{{depth: []uint32{0}, origin: []uint32{0}, after: []uint64{0}}}
		if x.before != nil {
			none[0].before = []uint64{0}
		}
		return [2][]half{none, none}, nil
	}
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
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(todo)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			m := x.maker()
			for x.ctx.Err() == nil {
				k := int(next.Add(1)) - 1
				if k >= len(todo) {
					return
				}
				t := todo[k]
				m.up, t.done, t.at = t.up, m, len(m.out.depth)
				if !t.up {
					m.out.grow(t.work, x.before != nil) // as many nodes as there are places, at most
				}
				m.stack = append(m.stack[:0], t.group...)
				m.visit(0, t.depth)
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
			halves[i] = append(halves[i], t.done.out.part(t.at, t.at+t.n))
		}
	}
	return halves, nil
}

// sandwich makes both halves of a method's, callers first. base is what it is compared
// with, nil: nothing.
func (r *Recording) sandwich(ctx context.Context, q, base *Query, method int32) ([2][]half, error) {
	none := [2][]half{}
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
		halves, err = x.run(x.frames(method))
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
func sandwichMessage(ctx context.Context, r *Recording, v url.Values) ([]byte, error) {
	if err := r.isVersion(v); err != nil {
		return nil, err
	}
	of, err := number(v, "of", 0)
	if err != nil || of > math.MaxInt32 {
		return nil, fmt.Errorf("%w: of is no method's number", ErrQuery)
	}
	var base *Query
	if from, to, ok := strings.Cut(v.Get("base"), "-"); ok || r.pair {
		was := maps.Clone(v)
		if r.pair {
			was["side"] = []string{"before"}
			v = maps.Clone(v)
			v["side"] = []string{"after"}
		} else {
			was["from"], was["to"] = []string{from}, []string{to}
		}
		b, err := r.query(was)
		if err != nil {
			return nil, err
		}
		base = &b
	}
	q, err := r.query(v)
	if err != nil {
		return nil, err
	}
	halves, err := r.sandwich(ctx, &q, base, int32(of))
	if err != nil {
		return nil, err
	}
	m := &message{}
	for i, name := range [2]string{"callers.", "callees."} {
		numbers := func(of func(h *half) []uint32) (out [][]uint32) {
			for k := range halves[i] {
				out = append(out, of(&halves[i][k]))
			}
			return out
		}
		weights := func(of func(h *half) []uint64) (out [][]uint64) {
			for k := range halves[i] {
				out = append(out, of(&halves[i][k]))
			}
			return out
		}
		m.u32s(name+"depth", numbers(func(h *half) []uint32 { return h.depth }))
		m.u32s(name+"origin", numbers(func(h *half) []uint32 { return h.origin }))
		m.f64s(name+"after", weights(func(h *half) []uint64 { return h.after }))
		if base != nil {
			m.f64s(name+"before", weights(func(h *half) []uint64 { return h.before }))
		}
	}
	return m.finish(map[string]int{"method": int(of)})
}
