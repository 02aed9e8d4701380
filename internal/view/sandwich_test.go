package view

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

// paths returns the nodes of a half by their path, innermost last.
func (h *half) paths(t *testing.T, s *shownTree, w *treeIndex) map[string][2]uint64 {
	t.Helper()
	out := map[string][2]uint64{}
	var way []uint32
	var last []int // by depth
	for i := range h.depth {
		d := int(h.depth[i])
		if d > len(way) || (d == 0) != (i == 0) {
			t.Fatalf("node %d at depth %d follows one at depth %d", i, d, len(way)-1)
		}
		way, last = append(way[:d], w.key[s.sym[h.origin[i]]]), last[:min(len(last), d+1)]
		if len(last) == d+1 && d > 0 && h.after[last[d]] < h.after[i] {
			t.Fatalf("node %d has %d, the one before it %d", i, h.after[i], h.after[last[d]])
		}
		last = append(last[:d], i)
		key := fmt.Sprint(way[1:])
		if _, twice := out[key]; twice {
			t.Fatalf("%s is there twice", key)
		}
		var before uint64
		if h.before != nil {
			before = h.before[i]
		}
		out[key] = [2]uint64{h.after[i], before}
	}
	return out
}

// folds compares a half with the same one without folding, and returns how many nodes are folded:
// what is left out is narrow, and the node that it is folded into has all of it.
func (h *half) folds(t *testing.T, all *half, w width) (folded int) {
	t.Helper()
	at := func(h *half, i int) [2]uint64 {
		if h.before == nil {
			return [2]uint64{h.after[i]}
		}
		return [2]uint64{h.after[i], h.before[i]}
	}
	wide := 0
	if w.before {
		wide = 1
	}
	whole := at(all, 0)
	least := func(x, n uint64) (out [2]float64) {
		part := 1.0
		if all := float64(whole[wide]); float64(x) < math.Ceil(w.right*all) && float64(x+n) > math.Floor(w.left*all) {
			part = w.right - w.left
		}
		for k := range out {
			out[k] = math.Ceil(part * float64(whole[k]) / float64(w.room))
		}
		return out
	}
	end := func(h *half, i int) int {
		k := i + 1
		for k < len(h.depth) && h.depth[k] > h.depth[i] {
			k++
		}
		return k
	}
	var same func(i, k int, x uint64)
	same = func(i, k int, x uint64) {
		if h.origin[i] != all.origin[k] || at(h, i) != at(all, k) || h.depth[i] != all.depth[k] {
			t.Fatalf("node %d has %v at depth %d, it is %d with %v at depth %d", i, at(h, i), h.depth[i], k, at(all, k), all.depth[k])
		}
		last := end(all, k)
		var missing []int
		child := i + 1
		for c := k + 1; c < last; c = end(all, c) {
			if child < end(h, i) && h.origin[child] == all.origin[c] {
				same(child, c, x)
				x += at(all, c)[wide]
				child = end(h, child)
			} else {
				// If it were not folded it would lie here, before what is lighter.
				v := at(all, c)
				if l := least(x, v[wide]); float64(v[0]) >= l[0] || h.before != nil && float64(v[1]) >= l[1] {
					t.Fatalf("%v is folded, where %v is wide enough to be seen", v, l)
				}
				missing = append(missing, c)
			}
		}
		var sum [2]uint64
		for _, c := range missing {
			v := at(all, c)
			sum[0], sum[1] = sum[0]+v[0], sum[1]+v[1]
		}
		if len(missing) == 0 != (child == end(h, i)) {
			t.Fatalf("%d nodes are missing below node %d, which ends at %d of %d", len(missing), i, child, end(h, i))
		}
		if len(missing) > 0 {
			if h.origin[child] != nowhere || int(h.folded[child]) != len(missing) || at(h, child) != sum || end(h, child) != child+1 {
				t.Fatalf("%d with %v are missing, node %d stands for %d with %v", len(missing), sum, child, h.folded[child], at(h, child))
			}
			folded += len(missing)
		}
	}
	same(0, 0, 0)
	return folded
}

// TestSandwich compares each path above and below a method with sums over the samples.
func TestSandwich(t *testing.T) {
	all := profiletest.Server(40_000, 150_000, 30)
	pair, err := OpenPair([2]string{"a", "b"}, profile.Apply(all, profile.Filter{To: 30e9}), profile.Apply(all, profile.Filter{From: 20e9}))
	if err != nil {
		t.Fatal(err)
	}
	nodes, parts, folded := 0, 0, 0
	for _, c := range []struct {
		name string
		r    *Recording
		ask  url.Values
	}{
		{"all", busy(t, 40_000, 150_000), url.Values{}},
		{"a part", busy(t, 4_000, 50_000), url.Values{"from": {"1000000000"}, "to": {"30000000000"}, "states": {"running,sleeping"}}},
		{"two stretches", busy(t, 4_000, 50_000), url.Values{"from": {"1000000000"}, "to": {"9000000000"}, "base": {"8000000000-30000000000"}}},
		{"two", pair, url.Values{"focus": {"HashMap"}}},
		{"collapsed", busy(t, 4_000, 50_000), url.Values{"collapse": {"package java.util"}, "recursion": {"."}}},
	} {
		r := c.r
		q, err := r.query(c.ask)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.shapeFor(q.rewrite)
		if err != nil {
			t.Fatal(err)
		}
		w := r.ways(s)
		sides := []url.Values{c.ask}
		with := func(change url.Values) url.Values {
			out := url.Values{}
			for _, v := range []url.Values{c.ask, change} {
				for k, list := range v {
					out[k] = list
				}
			}
			return out
		}
		switch {
		case r.pair:
			sides = []url.Values{with(url.Values{"side": {"after"}}), with(url.Values{"side": {"before"}})}
		case c.ask.Has("base"):
			sides = append(sides, with(url.Values{"from": {"8000000000"}, "to": {"30000000000"}}))
		}
		var queries []*Query
		var cells [][]Cell
		for _, v := range sides {
			q, err := r.query(v)
			if err != nil {
				t.Fatal(err)
			}
			n, err := r.Count(context.Background(), &q)
			if err != nil {
				t.Fatal(err)
			}
			queries, cells = append(queries, &q), append(cells, n.Cells)
		}
		queries = append(queries, nil)
		for method := range min(14, w.methods) {
			got, err := r.sandwich(context.Background(), queries[0], queries[1], int32(method), width{right: 1})
			if err != nil {
				t.Fatal(err)
			}
			want := [2]map[string][2]uint64{{}, {}}
			for side, list := range cells {
				for _, cell := range list {
					var stack []uint32 // outermost first
					at := -1
					for i := cell.Place; i > 0; i = w.parent[i] {
						stack = append(stack, w.key[s.sym[i]])
					}
					slices.Reverse(stack)
					if at = slices.Index(stack, uint32(method)); at < 0 {
						continue
					}
					above := slices.Clone(stack[:at])
					slices.Reverse(above)
					for k, way := range [2][]uint32{above, stack[at+1:]} {
						for n := range len(way) + 1 {
							key := fmt.Sprint(way[:n])
							sum := want[k][key]
							sum[side] += cell.Weight
							want[k][key] = sum
						}
					}
				}
			}
			for k := range got {
				have := got[k].paths(t, s, w)
				if len(want[k]) == 0 {
					want[k]["[]"] = [2]uint64{}
				}
				if len(have) != len(want[k]) {
					t.Errorf("%s, method %d, half %d: %d paths, want %d", c.name, method, k, len(have), len(want[k]))
				}
				for key, v := range want[k] {
					if have[key] != v {
						t.Fatalf("%s, method %d, half %d: %s has %v, want %v", c.name, method, k, key, have[key], v)
					}
				}
				nodes += len(have)
			}
			for _, part := range []width{{room: 20, right: 1}, {room: 300, left: 0.6, right: 0.7}, {room: 50, left: 0.25, right: 0.9, before: queries[1] != nil}} {
				some, err := r.sandwich(context.Background(), queries[0], queries[1], int32(method), part)
				if err != nil {
					t.Fatal(err)
				}
				for k := range some {
					folded += some[k].folds(t, &got[k], part)
				}
			}
			// Large halves are divided, and put together again.
			x := &sandwiching{ctx: context.Background(), ways: w, sym: s.sym}
			err = r.totalled(x.ctx, queries[0], s, func(after *placeSums) error {
				x.after = after
				var frames []has
				for i := range uint32(len(w.parent)) {
					if i > 0 && x.any(i) && w.method[s.sym[i]] == int32(method) {
						frames = append(frames, x.of(i))
					}
				}
				if len(frames) > 0 {
					parts = max(parts, len(x.plan(false, frames)), len(x.plan(true, frames)))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if nodes < 20_000 || parts < 8 || folded < 10_000 {
		t.Errorf("%d nodes were compared, in up to %d parts, and %d were folded", nodes, parts, folded)
	}
}

// TestSandwichRefuses asks what cannot be answered.
func TestSandwichRefuses(t *testing.T) {
	r := busy(t, 2000, 20_000)
	for _, v := range []url.Values{{"of": {"99999999"}}, {"of": {"-1"}}, {"of": {"9999999999999"}}, {"base": {"x-y"}}, {"version": {"7"}}, {"room": {"-1"}}, {"left": {"0.5"}, "right": {"0.5"}}, {"right": {"NaN"}}, {"left": {"-1"}}} {
		if _, err := sandwichMessage(context.Background(), r, v); !errors.Is(err, ErrQuery) && !errors.Is(err, errGrown) {
			t.Errorf("%v is answered with %v", v, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := sandwichMessage(ctx, r, url.Values{"of": {"1"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("one that nobody waits for is answered with %v", err)
	}
	// A request that is cancelled stops, even if its sums are remembered.
	if _, err := sandwichMessage(context.Background(), r, url.Values{"of": {"1"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := sandwichMessage(ctx, r, url.Values{"of": {"1"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("one of numbers that are known is answered with %v", err)
	}
}

// TestSandwichOfAHostileTree has a method with many callers, each far from the root: all paths up
// are millions of frames, made of some thousands.
func TestSandwichOfAHostileTree(t *testing.T) {
	defer func(was int64) { maxSandwich = was }(maxSandwich)
	maxSandwich = 1 << 20
	b := profile.NewBuilder()
	p := b.Profile()
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1}}
	frame := func(name string) uint32 {
		return b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: name}), Kind: walk.KindCompiled, BCI: -1})
	}
	thread := b.Thread(1, 1, "main")
	var deep uint32
	for range 1000 {
		deep = b.Node(deep, frame("down"))
	}
	hot := frame("hot")
	for i := range 3000 {
		b.Add(profile.Sample{Node: b.Node(b.Node(deep, frame(fmt.Sprint("caller", i))), hot), Thread: thread, Weight: 1})
	}
	r, err := Open("hostile.jfr", b.Finish())
	if err != nil {
		t.Fatal(err)
	}
	refused, answered := 0, 0
	for method := range int32(40) {
		halves, err := r.sandwich(context.Background(), new(Query), nil, method, width{right: 1})
		switch {
		case errors.Is(err, ErrQuery):
			refused++
		case err != nil:
			t.Fatal(err)
		default:
			answered++
			if n := len(halves[0].depth); n == 0 || n > 1100 {
				t.Errorf("method %d has %d callers", method, n)
			}
		}
	}
	if refused != 1 || answered < 30 {
		t.Errorf("%d methods are refused and %d answered, want hot to be refused", refused, answered)
	}
}
