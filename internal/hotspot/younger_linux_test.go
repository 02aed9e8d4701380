package hotspot

import (
	"syscall"
	"testing"

	"github.com/candid-profiler/candid/internal/target"
)

// early is a process whose pages were read before anything was there.
type early struct {
	target.Reader
	kept bool
}

func (e *early) Bytes(addr uint64, p []byte) bool {
	for i := range p {
		p[i] = 0xff // in a heap's map of segments: free
	}
	return e.kept
}

func (e *early) Prefetch([]uint64) {}

func (e *early) Invalidate() { e.kept = false }

// Code and methods that are younger than the pages that were read in the batch are found, and the
// pages are then read again.
func TestYoungerThanPages(t *testing.T) {
	p := startProgram(t, 17, "Parked", "100")
	syscall.Kill(p.PID, syscall.SIGSTOP)
	now, vm := openVM(t, p), openVM(t, p)
	vm.BeginBatch()
	pages := &early{Reader: vm.Mem.Reader}
	vm.Mem.Reader = pages
	found := 0
	eachBlob(t, now, func(b *blob) {
		if b.nm == nil {
			return
		}
		want := now.methodOf(b)
		if want == nil {
			return
		}
		pages.kept = true
		got := vm.find(b.codeBegin)
		if got == nil || got.start != b.start {
			if again := openVM(t, p).find(b.codeBegin); again != nil && again.start == b.start {
				t.Errorf("%s at %#x is not found", b.name, b.start)
			}
			return
		}
		if m := vm.methodOf(got); m == nil || m.function != want.function || pages.kept {
			t.Errorf("the method of %#x is %+v, should be %s; old pages are kept: %v", b.start, m, want.function, pages.kept)
		}
		found++
	})
	if found == 0 {
		t.Error("no compiled method is there")
	}
}
