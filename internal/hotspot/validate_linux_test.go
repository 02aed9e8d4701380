package hotspot

import (
	"encoding/binary"
	"testing"

	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// changed is a process in whose memory some words are replaced.
type changed struct {
	target.Reader
	words map[uint64]uint64
	gone  bool // nothing can be read
	reads int
}

func (c *changed) ReadAt(p []byte, addr uint64) error {
	c.reads++
	if c.gone {
		return target.ErrMemory
	}
	if err := c.Reader.ReadAt(p, addr); err != nil {
		return err
	}
	var b [8]byte
	for at, v := range c.words {
		binary.LittleEndian.PutUint64(b[:], v)
		for i := range b {
			if at+uint64(i)-addr < uint64(len(p)) {
				p[at+uint64(i)-addr] = b[i]
			}
		}
	}
	return nil
}

// openStopped opens a VM that is stopped. A running one may have something to compile, and drop
// code, long after its program reported that it is ready.
func openStopped(t *testing.T) *VM {
	t.Helper()
	p := parkedProgram(t, 17)
	stop(t, p.PID)
	return openVM(t, p)
}

// A blob that was replaced by another is noticed at its next use: in the next batch, or after many
// batches without a use.
func TestReplacedCode(t *testing.T) {
	vm := openStopped(t)
	mem := &changed{Reader: vm.Mem.Reader, words: map[uint64]uint64{}}
	vm.Mem.Reader = mem
	for _, batches := range []int{1, aheadBatches, aheadBatches + 3} {
		vm.BeginBatch()
		var b *blob
		var pc uint64
		eachBlob(t, vm, func(x *blob) {
			if x.kind == blobNMethod && len(x.nm.pcs) > 4 && b == nil {
				b, pc = x, x.codeBegin+uint64(uint32(x.nm.pcs[2].pc))
			}
		})
		if b == nil {
			t.Fatal("no compiled method")
		}
		e := vm.classify(pc)
		if e == nil || e.blob != b || vm.cached(pc) == nil && vm.classify(pc) != e {
			t.Fatalf("%#x is not cached", pc)
		}
		id, ok := vm.method(b.nm.method)
		if !ok {
			t.Fatal("the method is not found")
		}
		m := vm.methodAt(id)
		for range batches - 1 {
			vm.BeginBatch()
		}
		// The memory of the code is freed (CodeHeap marks the block unused), and that of the method
		// holds another.
		mem.words[b.start-vm.code.layout.blockHeader] = 0
		mem.words[b.start-vm.code.layout.blockHeader+8] = 0
		mem.words[m.constMethod] = ^uint64(0)
		mem.words[m.ptr+vm.methods.layout.constMethod.Offset] = 8
		vm.BeginBatch()
		if e := vm.cached(pc); e != nil {
			t.Errorf("after %d batches the freed code is cached", batches)
		}
		// In the batch in which it died it may stand for samples from before; its provenance then
		// says so.
		if e := vm.classify(pc); e != nil && e.blob == b && (!b.dead || vm.doubt(b, pc, 0, true) == walk.Exact) {
			t.Errorf("after %d batches the freed code is found as if it were there", batches)
		}
		if !b.dead {
			t.Errorf("after %d batches the blob lives", batches)
		}
		if again, ok := vm.method(m.ptr); ok {
			t.Errorf("after %d batches method %d is %d", batches, id, again)
		}
		vm.BeginBatch()
		if e := vm.classify(pc); e != nil && (e.blob == b || vm.doubt(e.blob, pc, 0, true) != walk.Heuristic) {
			t.Errorf("after %d batches the freed code is found a batch later", batches)
		}
		clear(mem.words)
		vm.BeginBatch()
		e = vm.classify(pc)
		if e == nil || e.blob == b || e.blob.codeBegin != b.codeBegin {
			t.Errorf("after %d batches the code that came back is not found", batches)
		}
	}
}

// The caches of a process that has ended are kept for its last samples.
func TestEnded(t *testing.T) {
	vm := openStopped(t)
	mem := &changed{Reader: vm.Mem.Reader}
	vm.Mem.Reader = mem
	vm.BeginBatch()
	var pcs []uint64
	unknown := 0
	methods := map[uint64]uint32{}
	eachBlob(t, vm, func(b *blob) {
		if b.kind == blobNMethod && len(b.nm.pcs) > 2 && len(pcs) < 100 {
			pc := b.codeBegin + uint64(uint32(b.nm.pcs[1].pc))
			if vm.classify(pc) == nil {
				unknown++
				return
			}
			pcs = append(pcs, pc)
			if id, ok := vm.method(b.nm.method); ok {
				methods[b.nm.method] = id
			}
		}
	})
	// How much the VM has compiled depends on the machine, and a method may have been compiled at
	// several levels.
	if len(pcs) == 0 || unknown > len(pcs)/2 || len(methods) < len(pcs)/4 {
		t.Fatalf("%d places in %d methods, %d are unknown", len(pcs), len(methods), unknown)
	}
	mem.gone = true
	for batch := range aheadBatches + 3 {
		vm.BeginBatch()
		if batch == 1 {
			continue // some batches have no uses
		}
		for _, pc := range pcs {
			if vm.classify(pc) == nil {
				t.Fatalf("batch %d: %#x is not known any more", batch, pc)
			}
		}
		for ptr, id := range methods {
			if got, ok := vm.method(ptr); !ok || got != id {
				t.Fatalf("batch %d: method %d is %d, %v", batch, id, got, ok)
			}
		}
	}
}

// Blobs that are used in every batch are not read one by one.
func TestChecksAreBatched(t *testing.T) {
	vm := openStopped(t)
	var pcs []uint64
	vm.BeginBatch()
	eachBlob(t, vm, func(b *blob) {
		if b.kind == blobNMethod && len(b.nm.pcs) > 2 && len(pcs) < 100 {
			pcs = append(pcs, b.codeBegin+uint64(uint32(b.nm.pcs[1].pc)))
		}
	})
	for range 3 {
		for _, pc := range pcs {
			vm.classify(pc)
		}
		vm.BeginBatch()
	}
	mem := &changed{Reader: vm.Mem.Reader}
	vm.Mem.Reader = mem
	for _, pc := range pcs {
		vm.classify(pc)
	}
	if len(pcs) == 0 || mem.reads > max(len(pcs)/10, 5) { // some reads always occur
		t.Errorf("%d reads for %d places that were checked already", mem.reads, len(pcs))
	}
	for range aheadBatches + 2 {
		vm.BeginBatch()
	}
	if n := len(vm.code.recent); n > 5 {
		t.Errorf("%d blobs that nobody uses are still checked in every batch", n)
	}
}

// TestTornMethod has a VM whose compiled method was incomplete when it was first read: its header
// was there, its table of pcs was not. Its positions are not made up, and it is read again.
func TestTornMethod(t *testing.T) {
	p := parkedProgram(t, 17)
	stop(t, p.PID)
	vm := openVM(t, p)
	var whole *blob
	eachBlob(t, vm, func(b *blob) {
		if b.kind == blobNMethod && len(b.nm.pcs) > 4 && whole == nil {
			whole = b
		}
	})
	if whole == nil {
		t.Fatal("no compiled method")
	}
	d := &whole.nm.debug
	for what, missing := range map[string]uint64{"first": d.pcsLo, "last": d.pcsLo + d.size() - sizeofPCDesc} {
		vm := openVM(t, p)
		mem := &changed{Reader: vm.Mem.Reader, words: map[uint64]uint64{missing: 0}}
		vm.Mem.Reader = mem
		b := vm.find(whole.start)
		if b == nil {
			t.Fatal("the method is not found")
		}
		if !b.nm.torn || len(b.nm.pcs) != 0 {
			t.Errorf("a method whose %s pc is missing has %d pcs, torn: %v", what, len(b.nm.pcs), b.nm.torn)
		}
		clear(mem.words)
		vm.BeginBatch()
		if b = vm.find(whole.start); b == nil || b.nm.torn || len(b.nm.pcs) != len(whole.nm.pcs) {
			t.Errorf("a method whose %s pc was missing is not read again", what)
		}
	}
}
