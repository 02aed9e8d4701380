package coreclr

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/winunwind"
)

// ready is an image of code that was compiled ahead of time (docs/design/coreclr/botr/
// readytorun-format.md). Its functions are in a table that is sorted by address; those of one method
// follow each other, the body first, then its funclets.
type ready struct {
	base      uint64
	functions uint64 // the table
	count     uint32
	methods   uint64            // a HashMap from the start of a method to its MethodDesc
	starts    map[uint32]uint32 // by index of a function, that of its method's body
	hotCold   uint64            // pairs of indices: of a cold part, and of the method it belongs to
	pairs     uint32
	last      winunwind.Function // of the last look-up
	lastIndex uint32
	entries   *entryPoints // nil: not read yet
	mem       memory       // of the process; what cannot be read there and never changes is read from file
	file      *peImage     // nil: it is not mapped from a file that can be read
}

const (
	maxFunctions = 1 << 22 // of one image
	maxFunclets  = 1 << 10 // of one method
	maxProbes    = 64      // of a hash map
	maxBuckets   = 1 << 24
	bucketSlots  = 4 // docs/design/datacontracts/ExecutionManager.md, HashMapSlotsPerBucket
	valueMask    = 1<<63 - 1
)

// readyOf returns the image of a section, nil if it cannot be read.
func (vm *VM) readyOf(s *section) *ready {
	if s.ready != nil {
		return s.ready
	}
	l := &vm.lay.ready
	info, ok := vm.mem.Word(s.module + l.info)
	if !ok || info == 0 || l.info == 0 {
		return nil
	}
	if composite, ok := vm.mem.Word(info + l.composite); ok && composite != 0 {
		info = composite
	}
	var b [4]byte
	functions, ok1 := vm.mem.Word(info + l.functions)
	ok2 := vm.mem.Bytes(info+l.count, b[:])
	n := binary.LittleEndian.Uint32(b[:])
	if !ok1 || !ok2 || n == 0 || n > maxFunctions || functions < s.lo || functions >= s.hi {
		return nil
	}
	s.ready = &ready{base: s.lo, functions: functions, count: n, methods: info + l.methods, starts: map[uint32]uint32{}, mem: vm.mem}
	vm.hold(s.ready)
	// The pairs and their number follow the table's (vm/readytoruninfo.h).
	pairs, ok1 := vm.mem.Word(info + l.count + 8)
	ok2 = vm.mem.Bytes(info+l.count+16, b[:])
	if m := binary.LittleEndian.Uint32(b[:]); ok1 && ok2 && pairs >= s.lo && pairs < s.hi && m <= 2*n && m%2 == 0 {
		s.ready.hotCold, s.ready.pairs = pairs, m/2
	}
	return s.ready
}

// function reads an entry of the table.
func (vm *VM) function(r *ready, i uint32) (winunwind.Function, bool) {
	var b [winunwind.FunctionSize]byte
	if i >= r.count || !r.mem.Bytes(r.functions+uint64(i)*winunwind.FunctionSize, b[:]) {
		return winunwind.Function{}, false
	}
	return winunwind.ParseFunction(b[:]), true
}

// functionAt returns the function that contains an address relative to the image.
func (vm *VM) functionAt(r *ready, rva uint32) (winunwind.Function, uint32, bool) {
	lo, hi := uint32(0), r.count
	for lo < hi {
		mid := lo + (hi-lo)/2
		f, ok := vm.function(r, mid)
		if !ok {
			return f, 0, false
		}
		if f.Begin <= rva {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return winunwind.Function{}, 0, false
	}
	f, ok := vm.function(r, lo-1)
	return f, lo - 1, ok && f.Contains(rva)
}

// precompiled returns the method at an address of an image, nil if there is none.
func (vm *VM) precompiled(s *section, pc uint64) *code {
	r := vm.readyOf(s)
	if r == nil {
		return nil
	}
	f, i, ok := vm.functionAt(r, uint32(pc-r.base))
	if !ok {
		return nil
	}
	body, method, ok := vm.bodyOf(r, i)
	if !ok {
		body = i
	}
	first, ok := vm.function(r, body)
	if !ok {
		return nil
	}
	start := r.base + uint64(first.Begin)
	c := vm.code.byStart[start]
	if c == nil || c.freed && !vm.stands(c) {
		c = vm.add(&code{start: start, end: start, base: r.base, method: method, image: r})
	}
	for n := range c.parts {
		if c.parts[n].Begin == f.Begin {
			return c
		}
	}
	if len(c.parts) >= maxUnwinds {
		return nil
	}
	_, cold := vm.hotOf(r, i)
	c.parts = append(c.parts, part{Function: f, funclet: i != body && !cold})
	c.end = max(c.end, r.base+uint64(f.End))
	return c
}

// bodyOf returns the index of the body of the method that a function belongs to, and the method. The
// runtime too goes back to the next function that is known as the start of a method
// (ReadyToRunJitManager::JitCodeToMethodInfo in vm/codeman.cpp): a method is known before it runs.
func (vm *VM) bodyOf(r *ready, i uint32) (body uint32, method uint64, ok bool) {
	if hot, is := vm.hotOf(r, i); is {
		i = hot
	}
	if at, seen := r.starts[i]; seen {
		i = at
	}
	for n, j := 0, i; n < maxFunclets; n, j = n+1, j-1 {
		f, ok := vm.function(r, j)
		if !ok {
			return 0, 0, false
		}
		if method, ok := vm.preparedMethod(r, r.base+uint64(f.Begin)); ok {
			r.starts[i] = j
			return j, method, true
		}
		if j == 0 {
			break
		}
	}
	return 0, 0, false
}

// hotOf returns the index of the body of the method of which function i is a cold part.
func (vm *VM) hotOf(r *ready, i uint32) (uint32, bool) {
	pair := func(n uint32) (cold, hot uint32, ok bool) {
		var b [8]byte
		ok = r.mem.Bytes(r.hotCold+8*uint64(n), b[:])
		return binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:]), ok
	}
	if r.pairs == 0 {
		return 0, false
	}
	if first, _, ok := pair(0); !ok || i < first {
		return 0, false // cold parts come after everything else
	}
	lo, hi := uint32(0), r.pairs
	for lo < hi {
		mid := lo + (hi-lo)/2
		cold, _, ok := pair(mid)
		if !ok {
			return 0, false
		}
		if cold <= i {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	_, hot, ok := pair(lo - 1)
	return hot, ok && hot < r.count
}

// preparedMethod returns the MethodDesc of a method by its start. The table is a HashMap of the
// runtime's (vm/hash.h): buckets of four keys and values each, whose number is before them. The next
// bucket is looked at as long as the highest bit of the first value is set.
func (vm *VM) preparedMethod(r *ready, start uint64) (uint64, bool) {
	const buckets = 16 // offset of the pointer in HashMap, the same in 8, 9 and 10
	at, ok1 := vm.mem.Word(r.methods + buckets)
	size, ok2 := vm.mem.Word(at)
	if !ok1 || !ok2 || size < 2 || size > maxBuckets {
		return 0, false
	}
	const bucket = 2 * bucketSlots * 8
	probe, step := uint64(uint32(start>>2)), 1+uint64(uint32((start>>5)+1))%(size-1)
	for n := 0; n < maxProbes; n++ {
		b := at + bucket + probe%size*bucket
		for i := uint64(0); i < bucketSlots; i++ {
			key, ok := vm.mem.Word(b + 8*i)
			if !ok {
				return 0, false
			}
			if key != start {
				continue
			}
			v, ok := vm.mem.Word(b + 8*(bucketSlots+i))
			return v << 1 & valueMask, ok && v&valueMask != 0
		}
		if v, ok := vm.mem.Word(b + 8*bucketSlots); !ok || v>>63 == 0 {
			break
		}
		probe += step
	}
	return 0, false
}
