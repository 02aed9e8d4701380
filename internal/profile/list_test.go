package profile

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
)

// The method list of many stacks is the same for any number of workers.
func TestListInParts(t *testing.T) {
	b := NewBuilder()
	b.p.Events = []Event{{Name: "cpu", Kind: EventCPU, Unit: "nanoseconds", Period: 1}}
	thread := b.Thread(1, 1, "main")
	var frames []uint32
	for i := range 300 {
		frames = append(frames, b.Frame(Frame{Func: b.Func(Func{Name: fmt.Sprint("f", i%250)}), Line: int32(i)}))
	}
	const stacks = 5 * leastListed
	for i := range uint32(stacks) {
		node := b.Node(b.Node(b.Node(RootNode, frames[i%7]), frames[i%300]), frames[i/300])
		b.Add(Sample{Node: node, Thread: thread, Weight: uint64(i)})
	}
	s := b.Finish().Select(Filter{})
	if len(s.ended) != stacks {
		t.Fatalf("%d stacks", len(s.ended))
	}
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	want := s.List()
	for _, n := range []int{2, 3, 16} {
		runtime.GOMAXPROCS(n)
		if !reflect.DeepEqual(s.List(), want) {
			t.Errorf("%d workers give another list", n)
		}
	}
}
