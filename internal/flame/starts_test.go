package flame

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

// stacks returns a tree's stacks, outermost frame first, and how many samples ended in each.
func stacks(t *Tree, funcs []profile.Func) map[string]uint32 {
	out := map[string]uint32{}
	names := []string{""} // by depth: the path
	for i, id := range t.Order {
		d := int(t.Depth[i])
		if d == 0 {
			continue
		}
		name := "[end]"
		if s := t.Symbols[t.Nodes.At(id).Frame]; s.Func != NoFunc {
			name = profile.KindName(s.Kind) + " " + funcs[s.Func].Name
		}
		names = append(names[:d], strings.TrimPrefix(names[d-1]+";"+name, ";"))
		out[names[d]] += t.Samples[id]
		out[names[d-1]] -= t.Samples[id]
	}
	delete(out, "")
	maps.DeleteFunc(out, func(_ string, n uint32) bool { return n == 0 })
	return out
}

// TestFoldStarts has each case, small enough to count by hand.
func TestFoldStarts(t *testing.T) {
	b := profile.NewBuilder()
	p := b.Profile()
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "count", Period: 1}}
	th := b.Thread(1, 1, "main")
	type frame struct {
		kind         walk.Kind
		name, module string
	}
	const libc, jvm = "/usr/lib/libc.so.6", "/opt/jdk/lib/server/libjvm.so"
	clone, begin := frame{walk.KindNative, "clone3", libc}, frame{walk.KindNative, "start_thread", libc}
	entry, call := frame{walk.KindNative, "thread_native_entry", jvm}, frame{walk.KindNative, "JavaCalls::call_helper", jvm}
	stub, run := frame{walk.KindStub, "StubRoutines::call_stub", ""}, frame{walk.KindInterpreted, "java.lang.Thread.run", ""}
	work, clinit := frame{walk.KindC2, "a.B.work", ""}, frame{walk.KindInterpreted, "a.B.<clinit>", ""}
	nameless := frame{walk.KindNative, "libjvm.so+0x10", jvm}
	add := func(n int, end walk.End, frames ...frame) {
		node := uint32(profile.RootNode)
		for _, f := range frames {
			prov := walk.Exact
			if f == begin {
				prov = walk.Derived
			}
			node = b.Node(node, b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: f.name, Module: f.module}), Kind: f.kind, Prov: prov}))
		}
		for range n {
			b.Add(profile.Sample{Weight: 1, Node: node, Thread: th, End: end})
		}
	}
	add(5, walk.EndComplete, clone, begin, entry, call, stub, run, work)
	add(2, walk.EndComplete, begin, entry, stub, run, work) // the same by another path
	add(3, walk.EndComplete, clone, begin, entry, call, stub, run, clinit, call, stub, work)
	add(4, walk.EndComplete, clone, begin, entry, frame{walk.KindNative, "CompileBroker::compiler_thread_loop", jvm})
	add(1, walk.EndComplete, clone, begin)                                       // starting
	add(2, walk.EndComplete, clone, begin, frame{walk.KindKernel, "exit", ""})   // the kernel's part of starting
	add(1, walk.EndComplete, clone, begin, frame{walk.KindNative, "mmap", libc}) // and the C library's
	add(6, walk.EndTruncated, begin, entry, call, stub, run, work)               // the frames outside are not known
	add(7, walk.EndComplete, work)
	add(8, walk.EndComplete, clone, begin, nameless, stub, run)                                     // leads to a frame that starts
	add(9, walk.EndComplete, clone, begin, frame{walk.KindNative, "libjvm.so+0x20", jvm}, nameless) // does not
	p = b.Profile()
	tree, err := Merge(p)
	if err != nil {
		t.Fatal(err)
	}
	before := stacks(tree, p.Funcs)
	folded, to := tree.FoldStarts(p.Funcs)
	if !tree.HasStarts(p.Funcs) || len(to) != len(tree.Order) {
		t.Fatalf("starts: %v, %d places of %d", tree.HasStarts(p.Funcs), len(to), len(tree.Order))
	}
	want := map[string]uint32{
		"interpreted java.lang.Thread.run;C2 a.B.work": 7,
		"interpreted java.lang.Thread.run;interpreted a.B.<clinit>;native JavaCalls::call_helper;stub StubRoutines::call_stub;C2 a.B.work": 3,
		"native CompileBroker::compiler_thread_loop":    4,
		"native clone3;native start_thread":             1,
		"native clone3;native start_thread;kernel exit": 2,
		"native clone3;native start_thread;native mmap": 1,
		"[end];native start_thread;native thread_native_entry;native JavaCalls::call_helper;stub StubRoutines::call_stub;interpreted java.lang.Thread.run;C2 a.B.work": 6,
		"C2 a.B.work":                                 7,
		"interpreted java.lang.Thread.run":            8,
		"native libjvm.so+0x20;native libjvm.so+0x10": 9,
	}
	if got := stacks(folded, p.Funcs); !maps.Equal(got, want) {
		t.Errorf("folded:\n%v\nwanted:\n%v", got, want)
	}
	if after := stacks(tree, p.Funcs); !maps.Equal(before, after) {
		t.Error("the tree itself is another one")
	}
	for i, id := range folded.Order { // start_thread was derived everywhere
		s := folded.Symbols[folded.Nodes.At(id).Frame]
		if i == 0 || s.Func == NoFunc || p.Funcs[s.Func].Name != "start_thread" || folded.Depth[i] == 0 {
			continue
		}
		if got := folded.Tally(Derived, id); got != uint64(folded.Samples[id]) {
			t.Errorf("start_thread: %d of %d derived", got, folded.Samples[id])
		}
	}
	if again, to := folded.FoldStarts(p.Funcs); again != folded || to != nil {
		t.Error("there is more to fold in what was folded")
	}
}

// TestFoldStartsOfMany compares each sample of a server's recording with its stack.
func TestFoldStartsOfMany(t *testing.T) {
	p := profiletest.Server(3000, 20_000, 40)
	tree, at, err := MergeSamples(p)
	if err != nil {
		t.Fatal(err)
	}
	folded, to := tree.FoldStarts(p.Funcs)
	if to == nil {
		t.Fatal("nothing was folded")
	}
	names := func(t *Tree, place uint32) (out []string) {
		for id := t.Order[place]; id > 0; id = t.Nodes.At(id).Parent {
			s := t.Symbols[t.Nodes.At(id).Frame]
			if s.Func == NoFunc {
				out = append(out, EndName(s.End))
				continue
			}
			out = append(out, profile.KindName(s.Kind)+" "+p.Funcs[s.Func].Name)
		}
		return out
	}
	shorter := 0
	ended := make([]uint32, len(folded.Order))
	for i := range p.Samples {
		was, is := names(tree, at[i]), names(folded, to[at[i]])
		if len(is) == 0 || len(is) > len(was) || !slices.Equal(is, was[:len(is)]) {
			t.Fatalf("%q became %q", was, is)
		}
		if len(is) < len(was) {
			shorter++
		}
		ended[to[at[i]]]++
	}
	if shorter < len(p.Samples)/2 {
		t.Errorf("%d of %d stacks are shorter", shorter, len(p.Samples))
	}
	var open []uint32
	for i := len(ended) - 1; i >= 0; i-- { // what lies below waits at its depth
		d := int(folded.Depth[i])
		for len(open) < d+2 {
			open = append(open, 0)
		}
		sum := ended[i] + open[d+1]
		open[d+1] = 0
		open[d] += sum
		if got := folded.Samples[folded.Order[i]]; got != sum {
			t.Fatalf("place %d has %d samples, its stacks %d", i, got, sum)
		}
	}
}
