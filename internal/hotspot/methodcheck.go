package hotspot

import (
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// maxSpan is how many bytes a Method and its ConstMethod may take together to be read in one piece:
// VMs allocate one right before the other. The cost of a read is finding and fetching the place,
// not its length.
const maxSpan = 1024

// methodChecks is scratch space for checking methods.
type methodChecks struct {
	reqs  []target.Read
	buf   []byte
	pools map[poolKey]int // index in reqs of the reads for each class
	own   []int           // and of those for each method
	one   [1]*method
}

// poolKey is a class as its methods refer to it: what must be read of the class is the same for
// all.
type poolKey struct{ constants, holder uint64 }

// joined returns how many bytes a method's own two parts span, 0 if they do not lie together.
func (m *method) joined(l *methodLayout) int {
	n := m.ptr + l.constMethod.Offset + 8 - m.constMethod
	if m.ptr < m.constMethod+l.sizeofConst || n > maxSpan {
		return 0
	}
	return int(n)
}

// freshMethod reports whether m is unchanged since it was decoded. Classes that are loaded and
// unloaded repeatedly may put equal Methods in the same place, so the class's name is part of the
// test.
func (vm *VM) freshMethod(m *method) bool {
	m.used = vm.Batch
	if m.batch == vm.Batch {
		return true
	}
	t := &vm.methods
	t.check.one[0] = m
	vm.checkMethods(t.check.one[:], nil)
	return m.batch == vm.Batch
}

// checkMethods compares methods with the process, in one read. Methods that are unchanged count as
// checked in this batch, the others are dropped. The header of b, which may be nil, is read after
// them: if b is unchanged, the methods that it refers to were its own.
func (vm *VM) checkMethods(ms []*method, b *blob) {
	t := &vm.methods
	l, k := &t.layout, &t.check
	if len(ms) == 0 || !l.ok {
		return
	}
	if k.pools == nil {
		k.pools = make(map[poolKey]int)
	}
	clear(k.pools)
	k.reqs, k.own = k.reqs[:0], k.own[:0]
	need := 0
	for _, m := range ms {
		need += max(m.joined(l), int(l.sizeofConst)+8) + 16
	}
	if b != nil {
		need += vm.code.layout.cookieLen
	}
	if cap(k.buf) < need {
		k.buf = make([]byte, need+need/2)
	}
	buf := k.buf[:cap(k.buf)]
	read := func(addr uint64, n int) {
		k.reqs = append(k.reqs, target.Read{Addr: addr, Buf: buf[:n:n]})
		buf = buf[n:]
	}
	for _, m := range ms {
		k.own = append(k.own, len(k.reqs))
		if n := m.joined(l); n > 0 {
			read(m.constMethod, n)
		} else {
			read(m.constMethod, int(l.sizeofConst))
			read(m.ptr+l.constMethod.Offset, 8)
		}
		key := poolKey{m.constants, m.holder}
		if _, ok := k.pools[key]; !ok {
			k.pools[key] = len(k.reqs)
			read(m.constants+l.poolHolder.Offset, 8)
			read(m.holder+l.klassName.Offset, 8)
		}
	}
	n := len(k.reqs)
	if b != nil {
		read(b.start-vm.code.layout.blockHeader, int(min(uint64(vm.code.layout.cookieLen), b.cookieLen)))
	}
	some := vm.Mem.ReadV(k.reqs) > 0
	seen := vm.Mem.Reads
	ended := !some && vm.ended()
	for i, m := range ms {
		switch {
		case !ended && !vm.sameMethod(m, k.reqs[k.own[i]:], k.reqs[k.pools[poolKey{m.constants, m.holder}]:]):
			vm.killMethod(m)
		case m.batch != vm.Batch:
			m.batch = vm.Batch
			if !t.naming {
				t.recent = append(t.recent, m)
			}
		}
		m.seen = seen
	}
	if b != nil && k.reqs[n].OK && vm.code.layout.same(k.reqs[n].Buf, b) {
		vm.Mem.Reads++
		b.seen = vm.Mem.Reads
	}
}

// sameMethod reports whether what was read for a method and of its class is still m.
func (vm *VM) sameMethod(m *method, own, class []target.Read) bool {
	l, c := &vm.methods.layout, &m.methodCookie
	h := own[0].Buf
	ptr := own[0]
	if m.joined(l) > 0 {
		ptr.Buf = h[len(h)-8:]
	} else {
		ptr = own[1]
	}
	return own[0].OK && ptr.OK && class[0].OK && class[1].OK &&
		vmstructs.Word(ptr.Buf, 0) == c.constMethod && vmstructs.Word(class[0].Buf, 0) == c.holder &&
		vmstructs.Word(class[1].Buf, 0) == c.className && l.constants.Load(h) == c.constants &&
		uint16(l.nameIndex.Load(h)) == c.nameIndex && uint16(l.sigIndex.Load(h)) == c.sigIndex &&
		uint32(l.codeSize.Load(h)) == m.codeSize
}

// beginMethods checks the methods that walks asked for recently.
func (vm *VM) beginMethods() {
	t := &vm.methods
	clear(t.bad)
	for _, id := range t.dead {
		t.all[id] = nil
	}
	t.dead = t.dead[:0]
	if len(t.byPtr) > t.sweep {
		vm.sweepMethods()
	}
	kept := t.recent[:0]
	for _, m := range t.recent {
		if vm.Batch-m.used <= aheadBatches && t.byPtr[m.ptr] == m.id {
			kept = append(kept, m)
		}
	}
	clear(t.recent[len(kept):])
	t.recent = kept
	// Methods that are still there are appended once more.
	t.ahead.check = append(t.ahead.check[:0], kept...)
	t.recent = t.recent[:0]
	vm.checkMethods(t.ahead.check, nil)
	clear(t.ahead.check)
}
