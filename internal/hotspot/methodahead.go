package hotspot

import (
	"encoding/binary"
	"slices"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/walk"
)

// A method that is seen for the first time is read in five steps, from eight places. Each step
// needs the result of the one before. If several methods are about to be asked for, as by the
// frames of an interpreted stack, each step is done for all of them together.

// maxAhead is how many methods are prefetched at a time. Their pages are half of those that the
// cache holds.
const maxAhead = 48

// methodsAhead is scratch space for prefetching.
type methodsAhead struct {
	ptrs  []uint64 // what will be asked for
	check []*method
	new   []newMethod
	pages []uint64 // addresses
}

// newMethod is what is known so far of a method that is about to be decoded.
type newMethod struct {
	ptr, constMethod, pool, holder uint64
	source                         uint64 // address of the pool's slot
	nameIndex, sigIndex            uint16
	class, name, sig, file         uint64 // Symbols
}

// expectMethods prepares for calls of method for the Methods at ptrs, which may be any addresses.
// Only time depends on it. b is the code that refers to them, nil if none does.
func (vm *VM) expectMethods(ptrs []uint64, b *blob) {
	t := &vm.methods
	a := &t.ahead
	if !t.layout.ok {
		return
	}
	a.check, a.new = a.check[:0], a.new[:0]
	for _, ptr := range ptrs[:min(len(ptrs), maxAhead)] {
		if id, ok := t.byPtr[ptr]; ok {
			if m := t.all[id]; m.batch != vm.Batch {
				a.check = append(a.check, m)
			}
			continue
		}
		if _, bad := t.bad[ptr]; bad || ptr == 0 || ptr&7 != 0 || slices.ContainsFunc(a.new, func(n newMethod) bool { return n.ptr == ptr }) {
			continue
		}
		a.new = append(a.new, newMethod{ptr: ptr})
	}
	if len(a.new) > 0 {
		b = nil // it has to be looked at after they were read
	}
	// A single method can as well be checked, or read, when it is asked for.
	if len(a.check) > 1 || len(a.check) == 1 && b != nil {
		vm.checkMethods(a.check, b)
	}
	clear(a.check)
	if len(a.new) > 1 {
		vm.fetchMethods(a.new)
	}
}

// expectScopes prepares for the methods of a chain of b's scopes.
func (vm *VM) expectScopes(chain []scope, b *blob) {
	a := &vm.methods.ahead
	a.ptrs = a.ptrs[:0]
	for i := range chain {
		if vm.proved(b, &chain[i]) == nil {
			a.ptrs = append(a.ptrs, chain[i].method)
		}
	}
	vm.expectMethods(a.ptrs, b)
}

// expectNames prepares for naming newly found code at pc, which may be a return address or the
// address at which a thread is.
func (vm *VM) expectNames(b *blob, pc uint64) {
	i := b.exact(pc)
	if i < 0 {
		i = b.atOrAfter(pc + 1)
	}
	chain, _ := vm.chain(vm.names.chain[:0], b, i)
	vm.names.chain = chain[:0]
	if len(chain) > 0 {
		vm.expectScopes(chain, b)
	}
}

// fetchMethods prefetches the memory that decoding the methods will read.
func (vm *VM) fetchMethods(ms []newMethod) {
	if !vm.Mem.Paged() {
		return
	}
	l, a := &vm.methods.layout, &vm.methods.ahead
	fetch := func() {
		vm.Mem.Expect(a.pages...)
		a.pages = a.pages[:0]
	}
	want := func(addr, n uint64) {
		if a.pages = append(a.pages, addr); (addr^(addr+n-1))>>12 != 0 {
			a.pages = append(a.pages, addr+n-1)
		}
	}
	var b [8]byte
	at := func(addr uint64, f vmstructs.Field) uint64 {
		if addr == 0 || !f.OK || !vm.Mem.Near(b[:f.Width], addr+f.Offset) {
			return 0
		}
		return vmstructs.Field{OK: true, Width: f.Width, Signed: f.Signed}.Load(b[:])
	}
	pointer := func(addr uint64) uint64 {
		if addr == 0 || !vm.Mem.Near(b[:], addr) {
			return 0
		}
		return binary.LittleEndian.Uint64(b[:])
	}
	a.pages = a.pages[:0]
	for i := range ms {
		want(ms[i].ptr, l.sizeofMethod)
	}
	fetch()
	for i := range ms {
		m := &ms[i]
		m.constMethod = at(m.ptr, l.constMethod)
		want(m.constMethod, l.sizeofConst)
	}
	fetch()
	for i := range ms {
		m := &ms[i]
		if m.pool = at(m.constMethod, l.constants); m.pool == 0 {
			continue
		}
		m.nameIndex, m.sigIndex = uint16(at(m.constMethod, l.nameIndex)), uint16(at(m.constMethod, l.sigIndex))
		want(m.pool, l.sizeofPool)
		want(vm.heap.PoolSlot(m.pool, m.nameIndex), 8)
		want(vm.heap.PoolSlot(m.pool, m.sigIndex), 8)
	}
	fetch()
	for i := range ms {
		m := &ms[i]
		m.holder = at(m.pool, l.poolHolder)
		m.name, m.sig = pointer(vm.heap.PoolSlot(m.pool, m.nameIndex)), pointer(vm.heap.PoolSlot(m.pool, m.sigIndex))
		if source := at(m.pool, l.poolSource); source != 0 {
			m.source = vm.heap.PoolSlot(m.pool, uint16(source))
			want(m.source, 8)
		}
		want(m.holder+l.klassName.Offset, 8)
		want(m.name, vm.heap.SymbolHead())
		want(m.sig, vm.heap.SymbolHead())
	}
	fetch()
	for i := range ms {
		m := &ms[i]
		m.class, m.file = at(m.holder, l.klassName), pointer(m.source)
		want(m.class, vm.heap.SymbolHead())
		want(m.file, vm.heap.SymbolHead())
	}
	fetch()
}

// lookAhead prepares for the methods of the frame at fp and of its outer frames, as long as they
// are interpreted too and were copied.
func (vm *VM) lookAhead(c *walk.Cursor, s *interpreterSlots, fp uint64) {
	t := &vm.methods
	a := &t.ahead
	if ptr, _ := c.Word(slot(fp, s.method)); t.byPtr[ptr] != 0 && t.all[t.byPtr[ptr]].batch == vm.Batch {
		return
	}
	a.ptrs = a.ptrs[:0]
	for len(a.ptrs) < maxAhead && fp&7 == 0 && c.InCopy(slot(fp, s.method)) && c.InCopy(fp+8) {
		ptr, _ := c.Word(slot(fp, s.method))
		a.ptrs = append(a.ptrs, ptr)
		ra, _ := c.Word(fp + 8)
		outer, _ := c.Word(fp)
		if !vm.inInterpreter(stripPC(c, ra)) || outer <= fp || outer-fp > maxInterpreted {
			break
		}
		fp = outer
	}
	if len(a.ptrs) > 1 {
		vm.expectMethods(a.ptrs, nil)
	}
}
