package record

import (
	"strings"
	"testing"
)

// Source lines of a whole machine are read as long as there is room, and it is said when
// there was none.
func TestRoom(t *testing.T) {
	used := uint64(0)
	r := room{used: func() uint64 { return used }}
	if !r.has(allHeap) || r.note() != "" {
		t.Errorf("no room in an empty heap; %q", r.note())
	}
	used = allHeap / 2
	if !r.has(allHeap/2) || r.has(allHeap/2+1) || r.has(1<<63) {
		t.Error("the room is not what is left of the heap")
	}
	used = 2 * allHeap
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
