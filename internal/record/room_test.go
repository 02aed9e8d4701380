package record

import (
	"strings"
	"testing"
)

// Source lines of a whole machine are read as long as there is room, and a lack of room is
// reported.
func TestRoom(t *testing.T) {
	used := uint64(0)
	r := room{all: true, used: func() uint64 { return used }}
	if !r.has(linesHeap) || r.note() != "" {
		t.Errorf("no room in an empty heap; %q", r.note())
	}
	used = linesHeap / 2
	if !r.has(linesHeap/2) || r.has(linesHeap/2+1) || r.has(1<<63) {
		t.Error("the room is not what is left of the heap")
	}
	used = 2 * linesHeap
	if r.has(1) {
		t.Error("there is room in a heap that is too large")
	}
	if n := r.note(); !strings.Contains(n, "not read 3 times") {
		t.Errorf("what was left out is told as %q", n)
	}
	if heapUsed() == 0 {
		t.Error("this program's heap is empty")
	}
}

// A recording that is given less memory divides it in the same way.
func TestSmallRoom(t *testing.T) {
	used := uint64(0)
	r := room{all: true, heap: 24 << 20, used: func() uint64 { return used }}
	if !r.has(20<<20) || r.has(20<<20+1) || !strings.Contains(r.note(), "limited") {
		t.Errorf("20 of 24 MB are not for lines; %q", r.note())
	}
	if got := r.excess(24<<20+3, 1); got != 3 {
		t.Errorf("the excess over 24 MB is %d", got)
	}
	if got := r.excess(24<<20, 9); got != 0 {
		t.Errorf("24 MB exceed 24 MB by %d", got)
	}
	if got := r.share(allPages); got != 3<<20 {
		t.Errorf("%d bytes for pages", got)
	}
}

// The excess of a heap is freed once, until the effect shows in the heap.
func TestExcess(t *testing.T) {
	var r room
	for i, step := range []struct {
		live, cycle uint64
		want        int
	}{
		{allHeap, 1, 0}, {allHeap + 5, 2, 5}, {allHeap + 5, 2, 0}, {allHeap + 7, 3, 0}, {allHeap + 7, 4, 7}, {allHeap - 1, 9, 0}, {allHeap + 1, 10, 1},
	} {
		if got := r.excess(step.live, step.cycle); got != step.want {
			t.Errorf("%d: %d bytes, want %d", i, got, step.want)
		}
	}
}
