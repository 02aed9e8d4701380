package hotspot

import (
	"encoding/binary"
	"math"

	"github.com/candid-profiler/candid/internal/hotspot/metadata"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/javaname"
)

// Bounds on methods.
const (
	maxMethods  = 1 << 19 // kept at a time
	sweepAt     = 1 << 14 // number of methods above which those not asked for recently are dropped
	sweepAge    = 1024    // batches
	maxBad      = 1 << 14 // addresses known not to be methods, per batch
	maxLineData = 1 << 19 // bytes of a line table: 65,535 bytecodes at 5 bytes and more
	accNative   = 0x100   // JVM specification, table 4.6-A
)

// methodLayout holds the offsets in Methods and what they lead to (docs/hotspot.md, "Methods").
type methodLayout struct {
	sizeofMethod, sizeofConst, sizeofPool uint64

	constMethod, accessFlags vmstructs.Field // Method
	constants, flags         vmstructs.Field // ConstMethod
	codeSize                 vmstructs.Field
	nameIndex, sigIndex      vmstructs.Field
	poolLength, poolHolder   vmstructs.Field // ConstantPool
	poolSource               vmstructs.Field // 17+
	klassName                vmstructs.Field // Klass
	klassSource              vmstructs.Field // InstanceKlass, up to 16
	ok                       bool
}

// method is a Method of the VM, decoded once.
type method struct {
	id  uint32
	ptr uint64
	methodCookie
	codeBase uint64 // address of its bytecodes
	codeSize uint32 // bytes
	native   bool

	class, name, signature string // as the VM holds them: java/util/Map, get, (I)V
	source                 string
	function, raw          string // in the form for display; raw is "" if the same

	hasLines  bool
	linesRead bool
	lines     []lineEntry
	batch     uint32
	used      uint32
	seen      uint64 // VM.Mem.Reads when it was last read or found unchanged
	linesSeen uint64 // and when its lines were read
}

// methodCookie tells a Method from another that may replace it.
type methodCookie struct {
	constMethod, constants, holder, className uint64
	nameIndex, sigIndex                       uint16
}

// nearMethod is a Method that was asked for recently. An interpreted stack asks for the Method of
// each of its frames.
type nearMethod struct {
	ptr uint64
	m   *method
}

const nearMethods = 256

// nearPlace returns the slot for ptr's Method. Methods lie close together, at multiples of 8 bytes.
func nearPlace(ptr uint64) uint64 { return ptr * 0x9E3779B97F4A7C15 >> (64 - 8) }

// methodTable holds the methods decoded so far.
type methodTable struct {
	layout methodLayout
	byPtr  map[uint64]uint32
	all    []*method // by id
	near   [nearMethods]nearMethod
	bad    map[uint64]struct{}
	dead   []uint32  // since the last batch
	sweep  int       // drop idle methods when there are more
	recent []*method // that walks asked for in the last batches: BeginBatch checks them all together
	naming bool      // the methods asked for are to be named, which is done once
	check  methodChecks
	ahead  methodsAhead
}

func (vm *VM) openMethods() {
	t, m := vm.Tables, &vm.methods
	l := methodLayout{
		sizeofMethod: t.Sizes["Method"],
		sizeofConst:  t.Sizes["ConstMethod"],
		sizeofPool:   t.Sizes["ConstantPool"],
		constMethod:  t.Field("Method::_constMethod"),
		accessFlags:  t.Field("Method::_access_flags"),
		constants:    t.Field("ConstMethod::_constants"),
		flags:        t.Field("ConstMethod::_flags._flags", "ConstMethod::_flags"),
		codeSize:     t.Field("ConstMethod::_code_size"),
		nameIndex:    t.Field("ConstMethod::_name_index"),
		sigIndex:     t.Field("ConstMethod::_signature_index"),
		poolLength:   t.Field("ConstantPool::_length"),
		poolHolder:   t.Field("ConstantPool::_pool_holder"),
		poolSource:   t.Field("ConstantPool::_source_file_name_index"),
		klassName:    t.Field("Klass::_name"),
		klassSource:  t.Field("InstanceKlass::_source_file_name_index"),
	}
	l.ok = l.constMethod.OK && l.constants.OK && l.codeSize.OK && l.nameIndex.OK && l.sigIndex.OK &&
		l.poolHolder.OK && l.klassName.OK && vm.heap.ReadsSymbols()
	for _, n := range []uint64{l.sizeofMethod, l.sizeofConst, l.sizeofPool} {
		l.ok = l.ok && n >= 16 && n <= 1024
	}
	if !l.ok {
		vm.Note("the VM does not publish the layout of methods: Java frames have no names")
	}
	if !l.poolSource.OK && !l.klassSource.OK {
		vm.Missing("ConstantPool::_source_file_name_index", "source files")
	}
	m.layout = l
	m.byPtr = make(map[uint64]uint32)
	m.bad = make(map[uint64]struct{})
	m.all = []*method{nil}
	m.sweep = sweepAt
}

// nearMethod is method for one that was asked for recently and was checked in this batch.
func (vm *VM) nearMethod(ptr uint64) (uint32, bool) {
	near := &vm.methods.near[nearPlace(ptr)]
	if m := near.m; near.ptr == ptr && m != nil && m.batch == vm.Batch {
		m.used = vm.Batch // a method that was checked in this batch is alive until the next
		return m.id, true
	}
	return 0, false
}

// method returns the id of the Method at ptr, which may be any address; false if
// there is none.
func (vm *VM) method(ptr uint64) (uint32, bool) {
	t := &vm.methods
	if id, ok := vm.nearMethod(ptr); ok {
		return id, true
	}
	if id, ok := t.byPtr[ptr]; ok {
		if m := t.all[id]; vm.freshMethod(m) {
			t.near[nearPlace(ptr)] = nearMethod{ptr, m}
			return id, true
		}
	}
	if ptr == 0 || ptr&7 != 0 || !t.layout.ok {
		return 0, false
	}
	if _, bad := t.bad[ptr]; bad {
		return 0, false
	}
	m := vm.readMethod(ptr)
	if m == nil {
		vm.Mem.Younger(func() bool { m = vm.readMethod(ptr); return m != nil })
	}
	if m == nil || len(t.byPtr) >= maxMethods || len(t.all) >= math.MaxInt32 {
		if len(t.bad) < maxBad {
			t.bad[ptr] = struct{}{}
		}
		return 0, false
	}
	m.id = uint32(len(t.all))
	m.batch, m.used, m.seen = vm.Batch, vm.Batch, vm.Mem.Reads
	t.all = append(t.all, m)
	t.byPtr[ptr] = m.id
	if !t.naming {
		t.recent = append(t.recent, m)
	}
	return m.id, true
}

// methodAt returns the method with an id, or nil.
func (vm *VM) methodAt(id uint32) *method {
	if int(id) >= len(vm.methods.all) {
		return nil
	}
	return vm.methods.all[id]
}

// readMethod decodes the Method at ptr, nil if there is none (the tests of docs/hotspot.md,
// "Methods").
func (vm *VM) readMethod(ptr uint64) *method {
	l := &vm.methods.layout
	m := &method{ptr: ptr}
	head := make([]byte, max(l.sizeofMethod, l.sizeofConst, l.sizeofPool))
	read := func(addr, n uint64) []byte {
		if addr == 0 || addr&7 != 0 || !vm.Mem.Near(head[:n], addr) {
			return nil
		}
		return head[:n]
	}
	h := read(ptr, l.sizeofMethod)
	if h == nil {
		return nil
	}
	c := &m.methodCookie
	c.constMethod = l.constMethod.Load(h)
	m.native = l.accessFlags.Load(h)&accNative != 0
	if h = read(c.constMethod, l.sizeofConst); h == nil {
		return nil
	}
	c.constants = l.constants.Load(h)
	c.nameIndex, c.sigIndex = uint16(l.nameIndex.Load(h)), uint16(l.sigIndex.Load(h))
	m.codeSize = uint32(l.codeSize.Load(h))
	m.codeBase = c.constMethod + l.sizeofConst
	m.hasLines = l.flags.Load(h)&1 != 0 && m.codeSize > 0
	vm.Mem.Expect(c.constants, vm.heap.PoolSlot(c.constants, c.nameIndex), vm.heap.PoolSlot(c.constants, c.sigIndex))
	if h = read(c.constants, l.sizeofPool); h == nil {
		return nil
	}
	c.holder = l.poolHolder.Load(h)
	source := l.poolSource.Load(h)
	length := uint64(math.MaxUint16 + 1)
	if l.poolLength.OK {
		length = l.poolLength.Load(h)
	}
	if c.holder == 0 || c.holder&7 != 0 || uint64(c.nameIndex) >= length || uint64(c.sigIndex) >= length ||
		c.nameIndex == 0 || c.sigIndex == 0 || length > math.MaxUint16+1 {
		return nil
	}
	if !l.poolSource.OK {
		source, _ = vm.Mem.Member(c.holder, l.klassSource)
	}
	var slots [4][8]byte
	at := [4]uint64{c.holder + l.klassName.Offset, vm.heap.PoolSlot(c.constants, c.nameIndex), vm.heap.PoolSlot(c.constants, c.sigIndex)}
	n := 3
	if source != 0 && source < length {
		at[3], n = vm.heap.PoolSlot(c.constants, uint16(source)), 4
	}
	vm.Mem.Expect(at[:n]...)
	for i, addr := range at[:n] {
		if !vm.Mem.Near(slots[i][:], addr) && i < 3 {
			return nil
		}
	}
	var addrs [4]uint64
	for i := range addrs {
		addrs[i] = binary.LittleEndian.Uint64(slots[i][:])
	}
	c.className = addrs[0]
	var text [4]string
	vm.heap.Symbols(addrs[:], text[:])
	if !metadata.IsClassName(text[0]) || !metadata.IsMethodName(text[1]) || !metadata.IsDescriptor(text[2]) {
		return nil
	}
	m.class, m.name, m.signature, m.source = text[0], text[1], text[2], text[3]
	m.function, m.raw = javaname.Function(m.class, m.name)
	return m
}

// killMethod drops a method whose memory holds something else. It can be named until the next batch
// begins.
func (vm *VM) killMethod(m *method) {
	t := &vm.methods
	if t.byPtr[m.ptr] != m.id {
		return // dead already
	}
	delete(t.byPtr, m.ptr)
	t.dead = append(t.dead, m.id)
	vm.died++
}

// sweepMethods drops methods that have not been asked for recently: those of unloaded classes are
// never asked for again.
func (vm *VM) sweepMethods() {
	t := &vm.methods
	for ptr, id := range t.byPtr {
		if m := t.all[id]; m == nil || vm.Batch-m.used > sweepAge {
			delete(t.byPtr, ptr)
			t.all[id] = nil
		}
	}
	t.sweep = max(sweepAt, 2*len(t.byPtr))
}

// bciFromBCP turns the address of a bytecode into its index, -1 if it is not one of the method's.
// Up to JDK 8 the collector leaves the index itself in the frame while it runs (8
// share/vm/runtime/frame.inline.hpp).
func (vm *VM) bciFromBCP(id uint32, bcp uint64) int32 {
	m := vm.methodAt(id)
	switch {
	case m == nil || m.native:
		return -1
	case bcp-m.codeBase < uint64(m.codeSize):
		return int32(bcp - m.codeBase)
	case vm.Major == 8 && bcp != 0 && bcp < uint64(m.codeSize):
		return int32(bcp)
	}
	return -1
}

// methodName returns the name of the Method at ptr as it is shown; false if there is none.
func (vm *VM) methodName(ptr uint64) (string, bool) {
	id, ok := vm.method(ptr)
	if m := vm.methodAt(id); ok && m != nil {
		return m.function, true
	}
	return "", false
}
