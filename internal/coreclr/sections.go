package coreclr

import (
	"cmp"
	"slices"
	"sort"
)

// kind of a section.
type sectionKind uint8

const (
	stubs   sectionKind = iota // code that belongs to no method
	methods                    // a heap of generated code
	image                      // code compiled ahead of time
)

// Bits of RangeSection's flags (src/coreclr/vm/codeman.h).
const (
	flagCollectible = 1
	flagHeap        = 2
	flagList        = 4
)

// section is a range of managed code.
type section struct {
	lo, hi uint64
	base   uint64 // what addresses in unwind information are relative to
	kind   sectionKind
	// freed says that the runtime may free pieces of it, or all of it.
	freed bool
	addr  uint64 // of the RangeSection

	mapBase, nibbles uint64 // of a heap
	ready            *ready // of an image; nil: not read yet
	module           uint64 // of an image: the Module
}

// Bounds of the map of sections.
const (
	maxFragments = 256     // in one chunk
	maxSections  = 1 << 16 // of one process
	chunkBits    = 17      // each chunk has a list of its own
	absentSize   = 1 << 10 // chunks remembered as having no code
)

// sectionTable is what is known of the map.
type sectionTable struct {
	root   uint64 // the map's outermost level
	known  []*section
	lo, hi uint64 // of all known
	last   *section
	absent [absentSize]absent
}

// absent is a chunk in which nothing more was found in a batch.
type absent struct {
	chunk uint64
	batch uint32
}

// sectionOf returns the section that pc lies in, nil if it is in none.
func (vm *VM) sectionOf(pc uint64) *section {
	t := &vm.sections
	if s := t.last; s != nil && pc >= s.lo && pc < s.hi {
		return s
	}
	if pc >= t.lo && pc < t.hi {
		i := sort.Search(len(t.known), func(i int) bool { return t.known[i].hi > pc })
		if i < len(t.known) && t.known[i].lo <= pc {
			t.last = t.known[i]
			return t.last
		}
	}
	chunk := pc >> chunkBits
	a := &t.absent[chunk*0x9e3779b97f4a7c15>>54&(absentSize-1)]
	if a.batch == vm.batch && a.chunk == chunk {
		return nil
	}
	if s := vm.lookSection(pc); s != nil {
		t.last = s
		return s
	}
	*a = absent{chunk, vm.batch}
	return nil
}

// lookSection looks an address up in the process's own map: five levels of 256 pointers each, by
// the bits of the address from 56 down (docs/design/datacontracts/ExecutionManager.md). The lowest
// bit of a pointer marks memory of collectible assemblies.
func (vm *VM) lookSection(pc uint64) *section {
	if pc < 1<<16 || pc >= 1<<56 {
		return nil
	}
	at := vm.sections.root
	for shift := 49; shift >= chunkBits; shift -= 8 {
		next, ok := vm.mem.Word(at + 8*(pc>>shift&255))
		if at = next &^ 1; !ok || at == 0 {
			return nil
		}
	}
	l := &vm.lay.frag
	for n := 0; at != 0 && n < maxFragments; n++ {
		begin, ok1 := vm.mem.Word(at + l.begin)
		end, ok2 := vm.mem.Word(at + l.end)
		addr, ok3 := vm.mem.Word(at + l.section)
		next, ok4 := vm.mem.Word(at + l.next)
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return nil
		}
		if pc >= begin && pc < end {
			return vm.addSection(addr&^1, pc)
		}
		at = next &^ 1
	}
	return nil
}

// addSection reads a RangeSection that pc lies in; nil if it does not.
func (vm *VM) addSection(addr, pc uint64) *section {
	l := &vm.lay.section
	s := &section{addr: addr}
	var flags, heap uint64
	for _, f := range []struct {
		to *uint64
		at uint64
	}{{&s.lo, l.begin}, {&s.hi, l.end}, {&flags, l.flags}, {&s.module, l.module}, {&heap, l.heap}} {
		v, ok := vm.mem.Word(addr + f.at)
		if !ok {
			return nil
		}
		*f.to = v
	}
	if pc < s.lo || pc >= s.hi || s.hi-s.lo > 1<<32 {
		return nil
	}
	s.base, s.freed = s.lo, flags&flagCollectible != 0
	switch {
	case flags&flagHeap != 0:
		base, ok1 := vm.mem.Word(heap + vm.lay.heap.base)
		nibbles, ok2 := vm.mem.Word(heap + vm.lay.heap.nibbles)
		if !ok1 || !ok2 || base > pc || nibbles == 0 {
			return nil
		}
		s.kind, s.mapBase, s.nibbles = methods, base, nibbles
	case flags&flagList == 0 && s.module != 0:
		s.kind = image
	}
	t := &vm.sections
	if len(t.known) >= maxSections {
		t.known = nil
	}
	// Sections that overlap the new one have been freed since.
	t.known = slices.DeleteFunc(t.known, func(k *section) bool { return k.lo < s.hi && s.lo < k.hi })
	i, _ := slices.BinarySearchFunc(t.known, s.lo, func(k *section, lo uint64) int { return cmp.Compare(k.lo, lo) })
	t.known = slices.Insert(t.known, i, s)
	t.lo, t.hi, t.last = t.known[0].lo, t.known[len(t.known)-1].hi, nil
	return s
}

// checkSections forgets sections that the runtime has freed.
func (vm *VM) checkSections() {
	t := &vm.sections
	l := &vm.lay.section
	gone := func(s *section) bool {
		if !s.freed && s.kind != stubs {
			return false // never freed
		}
		lo, ok1 := vm.mem.Word(s.addr + l.begin)
		hi, ok2 := vm.mem.Word(s.addr + l.end)
		if !ok1 || !ok2 {
			return !vm.ended()
		}
		return lo != s.lo || hi != s.hi
	}
	if slices.ContainsFunc(t.known, gone) {
		t.known = slices.DeleteFunc(t.known, gone)
		t.last = nil
		vm.code.forget()
	}
}
