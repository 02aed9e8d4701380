package coreclr

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// region is a piece of memory, from start up to but without end. In one of the heap the collector has
// put objects one after the other.
type region struct{ start, end uint64 }

// heapMap is where the objects of the heap are that may be of any type. Large objects and pinned arrays are
// elsewhere.
type heapMap struct {
	regions []region
	size    uint64 // of all of them
	// gaps are those parts of regions that threads allocate in, sorted. What is in them is known only to
	// the thread.
	gaps   []region
	looked int  // regions, empty ones too
	cut    bool // there is more than is read
}

// Bounds of the heap's map.
const (
	maxHeaps   = 1 << 10 // a server collector has one for each CPU
	maxRegions = 1 << 16 // of 4 MB each, where memory is divided into regions
	maxRegion  = 1 << 44
)

// minObject is the size of the smallest object. The collector leaves as much free behind each piece that
// a thread allocates in.
const minObject = 24

// Offsets in GcDacVars, which the collector publishes for debuggers (src/coreclr/gc/gcinterface.dacvars.def;
// its major version says that they are these).
const (
	dacMajor           = 0x00
	dacGenerationSize  = 0x08
	dacGenerations     = 0x10
	dacGenerationTable = 0x30
	dacEphemeral       = 0x50
	dacAllocAllocated  = 0x78
	dacNHeaps          = 0xb0
	dacHeaps           = 0xb8
	dacHeapFields      = 0xf0
	dacGenFields       = 0xf8
	dacSize            = 0x100

	dacVersion = 2 // of 8 to 10
)

// Numbers of fields in the collector's lists of offsets (src/coreclr/gc/dac_gcheap_fields.h,
// dac_generation_fields.h, gcinterface.dac.h: GENERATION_TABLE_FIELD_INDEX).
const (
	heapAllocAllocated  = 0
	heapEphemeral       = 1
	heapGenerationTable = 18
	genAllocContext     = 0
	genStartSegment     = 1
	genAllocStart       = 2
)

// Offsets in a heap_segment (gcinterface.dac.h: dac_heap_segment), which is a region or a larger segment.
const (
	segmentAllocated = 0
	segmentReserved  = 16
	segmentMem       = 32
	segmentFlags     = 40
	segmentNext      = 48
	segmentSize      = 56

	segmentReadOnly = 1 // of flags: objects that were there from the beginning, above all strings
)

// generations of objects that may be of any type: 0, 1, 2.
const smallGenerations = 3

// oneHeap is where one of the collector's heaps keeps what is read of it.
type oneHeap struct {
	table      uint64 // of generations
	ephemeral  uint64 // the variable with the segment that is allocated in
	allocated  uint64 // the variable that says how far that is filled
	genSize    uint64
	start      uint64 // offsets in a generation
	context    uint64
	useRegions bool
}

// heap reads where objects are now. The error wraps ErrHeap.
func (vm *VM) heap() (*heapMap, error) {
	heaps, err := vm.heaps()
	if err != nil {
		return nil, err
	}
	// The gaps come last: what a thread begins to allocate in after that is still zero, or filled.
	m := &heapMap{}
	for i := range heaps {
		if err := vm.addHeap(m, &heaps[i]); err != nil {
			return nil, err
		}
	}
	for i := range heaps { // what the collector has given to the youngest generation as a whole
		vm.addGap(m, heaps[i].table+heaps[i].context)
	}
	if !vm.addGaps(m) {
		return nil, fmt.Errorf("the list of threads, which say where they allocate, cannot be read: %w", ErrHeap)
	}
	slices.SortFunc(m.gaps, func(a, b region) int {
		switch {
		case a.start < b.start:
			return -1
		case a.start > b.start:
			return 1
		}
		return 0
	})
	return m, nil
}

// heapKnown returns an error that wraps ErrHeap if the runtime is one whose heap is not read.
func (vm *VM) heapKnown() error {
	if vm.desc == nil || vm.system.Windows || vm.lay.alloc.locals == 0 || vm.lay.alloc.limit == 0 {
		return fmt.Errorf("CoreCLR %s: what is needed for that is published since .NET 9, and candid reads it on Linux only: %w", vm.version, ErrHeap)
	}
	return nil
}

// heaps reads the collector's list of heaps.
func (vm *VM) heaps() ([]oneHeap, error) {
	// g_gcDacGlobals follows g_heap_type in the table of variables (src/coreclr/inc/dacvars.h).
	at, err := vm.word(vm.dac + 8*(vm.lay.gc.kind+1))
	if err == nil {
		at, err = vm.word(at)
	}
	var b [dacSize]byte
	if err == nil {
		err = vm.mem.ReadAt(b[:], at)
	}
	if err != nil {
		return nil, fmt.Errorf("what the collector publishes: %w: %w", err, ErrHeap)
	}
	le := binary.LittleEndian
	word := func(off int) uint64 { return le.Uint64(b[off:]) }
	size := word(dacGenerationSize)
	if b[dacMajor] != dacVersion || word(dacGenerations) < smallGenerations || word(dacGenerations) > 16 || size < 16 || size > 1<<16 || size&7 != 0 {
		return nil, fmt.Errorf("what the collector publishes has version %d, and %d generations of %d bytes: %w", b[dacMajor], word(dacGenerations), size, ErrHeap)
	}
	start, ok1 := vm.fieldOffset(word(dacGenFields), genStartSegment)
	context, ok2 := vm.fieldOffset(word(dacGenFields), genAllocContext)
	if !ok1 || !ok2 || start+8 > size || context+16 > size {
		return nil, fmt.Errorf("what the collector publishes of generations cannot be read: %w", ErrHeap)
	}
	// Where memory is divided into regions a generation has no place at which it begins.
	_, begins := vm.fieldOffset(word(dacGenFields), genAllocStart)
	one := oneHeap{genSize: size, start: start, context: context, useRegions: !begins}
	if server, ok := vm.ServerGC(); !ok {
		return nil, fmt.Errorf("the kind of the collector cannot be read: %w", ErrHeap)
	} else if !server {
		one.table, one.ephemeral, one.allocated = word(dacGenerationTable), word(dacEphemeral), word(dacAllocAllocated)
		return []oneHeap{one}, nil
	}
	var count [4]byte
	list, err := vm.word(word(dacHeaps))
	if err != nil || vm.mem.ReadAt(count[:], word(dacNHeaps)) != nil || le.Uint32(count[:]) == 0 || le.Uint32(count[:]) > maxHeaps {
		return nil, fmt.Errorf("the list of heaps cannot be read: %w", ErrHeap)
	}
	table, ok1 := vm.fieldOffset(word(dacHeapFields), heapGenerationTable)
	ephemeral, ok2 := vm.fieldOffset(word(dacHeapFields), heapEphemeral)
	allocated, ok3 := vm.fieldOffset(word(dacHeapFields), heapAllocAllocated)
	if !ok1 || !ok2 || !ok3 {
		return nil, fmt.Errorf("what the collector publishes of heaps cannot be read: %w", ErrHeap)
	}
	var out []oneHeap
	for i := range uint64(le.Uint32(count[:])) {
		heap, err := vm.word(list + 8*i)
		if err != nil || heap == 0 {
			return nil, fmt.Errorf("heap %d cannot be read: %w", i, ErrHeap)
		}
		h := one
		h.table, h.ephemeral, h.allocated = heap+table, heap+ephemeral, heap+allocated
		out = append(out, h)
	}
	return out, nil
}

// fieldOffset reads an offset from one of the collector's lists of them; -1 is a field that it lacks.
func (vm *VM) fieldOffset(list uint64, n uint64) (uint64, bool) {
	var b [4]byte
	if vm.mem.ReadAt(b[:], list+4*n) != nil {
		return 0, false
	}
	off := int32(binary.LittleEndian.Uint32(b[:]))
	return uint64(off), off >= 0 && off < 1<<20
}

// addHeap adds the regions of a heap. Where memory is divided into regions, each generation has a list
// of them; otherwise all three are in the list of the oldest.
func (vm *VM) addHeap(m *heapMap, h *oneHeap) error {
	first := 0
	if !h.useRegions {
		first = smallGenerations - 1
	}
	// The segment that is allocated in is filled up to a place that is elsewhere. Both change together
	// when it is full.
	var ephemeral, filled uint64
	for try := 0; ; try++ {
		var again uint64
		var err1, err2, err3 error
		ephemeral, err1 = vm.word(h.ephemeral)
		filled, err2 = vm.word(h.allocated)
		again, err3 = vm.word(h.ephemeral)
		if err1 != nil || err2 != nil || err3 != nil {
			return fmt.Errorf("where the collector allocates cannot be read: %w", ErrHeap)
		}
		if again == ephemeral {
			break
		}
		if try == 8 {
			return fmt.Errorf("where the collector allocates changes all the time: %w", ErrHeap)
		}
	}
	for g := first; g < smallGenerations; g++ {
		at, err := vm.word(h.table + uint64(g)*h.genSize + h.start)
		for ; err == nil && at != 0; at, err = vm.word(at + segmentNext) {
			if m.looked++; m.looked > maxRegions { // also of those that are empty: a damaged list may have no end
				m.cut = true
				return nil
			}
			var b [segmentSize]byte
			if err = vm.mem.ReadAt(b[:], at); err != nil {
				break
			}
			le := binary.LittleEndian
			r := region{le.Uint64(b[segmentMem:]), le.Uint64(b[segmentAllocated:])}
			if at == ephemeral {
				r.end = filled
			}
			if le.Uint64(b[segmentFlags:])&segmentReadOnly != 0 || r.start == r.end {
				continue
			}
			if r.start&7 != 0 || r.end < r.start || r.end-r.start > maxRegion || r.end > le.Uint64(b[segmentReserved:]) {
				return fmt.Errorf("a region from %#x to %#x: %w", r.start, r.end, ErrHeap)
			}
			m.regions, m.size = append(m.regions, r), m.size+r.end-r.start
		}
		if err != nil {
			return fmt.Errorf("the regions of generation %d: %w: %w", g, err, ErrHeap)
		}
	}
	return nil
}

// addGaps adds what threads allocate in.
func (vm *VM) addGaps(m *heapMap) bool {
	threads, whole := vm.Threads()
	l := &vm.lay.alloc
	for _, t := range threads {
		locals, err := vm.word(t.at + l.locals)
		if err != nil {
			return false
		}
		if locals != 0 { // else it has not run managed code
			vm.addGap(m, locals+l.context+l.inner)
		}
	}
	return whole
}

// addGap adds the memory that an allocation context has not given to objects yet.
func (vm *VM) addGap(m *heapMap, context uint64) {
	var b [16]byte
	l := &vm.lay.alloc
	if vm.mem.ReadAt(b[:8], context+l.pointer) != nil || vm.mem.ReadAt(b[8:], context+l.limit) != nil {
		return
	}
	g := region{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
	if g.start != 0 && g.start&7 == 0 && g.end >= g.start && g.end-g.start < maxRegion {
		g.end += minObject
		m.gaps = append(m.gaps, g)
	}
}
