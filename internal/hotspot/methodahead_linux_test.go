package hotspot

import (
	"slices"
	"testing"
)

// compiled returns the Methods of compiled code.
func compiled(t *testing.T, vm *VM) []uint64 {
	t.Helper()
	var out []uint64
	eachBlob(t, vm, func(b *blob) {
		if b.kind == blobNMethod && b.nm.methodID != 0 && len(out) < maxAhead-8 && !slices.Contains(out, b.nm.method) {
			out = append(out, b.nm.method)
		}
	})
	if len(out) < 2 { // how many there are depends on the machine
		t.Fatalf("%d methods have been compiled", len(out))
	}
	return out
}

// If methods are checked together, exactly those that have been replaced are dropped, whatever part
// of them was replaced.
func TestMethodsAreCheckedTogether(t *testing.T) {
	vm := openStopped(t)
	mem := &changed{Reader: vm.Mem.Reader, words: map[uint64]uint64{}}
	vm.Mem.Reader = mem
	vm.BeginBatch()
	ptrs := compiled(t, vm)
	l := &vm.methods.layout
	for what, place := range map[string]func(*method) uint64{
		"the method":         func(m *method) uint64 { return m.ptr + l.constMethod.Offset },
		"its constants":      func(m *method) uint64 { return m.constMethod + l.constants.Offset },
		"its class":          func(m *method) uint64 { return m.constants + l.poolHolder.Offset },
		"its class's name":   func(m *method) uint64 { return m.holder + l.klassName.Offset },
		"nothing whatsoever": nil,
	} {
		var all []*method
		for _, ptr := range ptrs {
			id, ok := vm.method(ptr)
			if !ok {
				t.Fatalf("%s: there is no method at %#x", what, ptr)
			}
			all = append(all, vm.methodAt(id))
		}
		for range aheadBatches + 2 {
			vm.BeginBatch()
		}
		var at uint64
		if place != nil {
			at = place(all[1])
			mem.words[at] = 8
		}
		vm.expectMethods(append([]uint64{0, 7, 8, 1 << 63, ^uint64(0)}, ptrs...), nil)
		for _, m := range all {
			replaced := place != nil && place(m) == at
			if lives := vm.methods.byPtr[m.ptr] == m.id; lives == replaced {
				t.Errorf("%s has changed: method %s.%s lives: %v", what, m.class, m.name, lives)
			} else if lives && m.batch != vm.Batch {
				t.Errorf("%s has changed: method %s.%s was not checked", what, m.class, m.name)
			}
		}
		clear(mem.words)
		vm.BeginBatch()
	}
}

// Methods that are prefetched are equal to the same methods read one by one.
func TestMethodsAreReadAhead(t *testing.T) {
	p := parkedProgram(t, 17)
	stop(t, p.PID)
	alone, together := openVM(t, p), openVM(t, p)
	alone.BeginBatch()
	ptrs := compiled(t, alone)
	together.BeginBatch()
	together.expectMethods(append([]uint64{0, 8, 1 << 63, together.interpLo}, ptrs...), nil)
	for _, ptr := range ptrs {
		a, ok1 := alone.method(ptr)
		b, ok2 := together.method(ptr)
		if !ok1 || !ok2 {
			t.Fatalf("the method at %#x: %v alone, %v ahead", ptr, ok1, ok2)
		}
		x, y := alone.methodAt(a), together.methodAt(b)
		if x.methodCookie != y.methodCookie || x.class != y.class || x.name != y.name || x.signature != y.signature || x.source != y.source {
			t.Errorf("alone %s.%s%s of %s is ahead %s.%s%s of %s", x.class, x.name, x.signature, x.source, y.class, y.name, y.signature, y.source)
		}
	}
}
