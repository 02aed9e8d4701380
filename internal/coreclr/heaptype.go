package coreclr

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/climeta"
	"github.com/candid-profiler/candid/internal/symbol"
)

// heapType is what the heap's reader knows of a type by its MethodTable.
type heapType struct {
	table     uint64
	base      uint64 // bytes of an object without elements, with the word before it
	component uint64 // bytes of an element; 0: it has none
	free      bool   // no type: memory between objects
	bad       bool   // not a MethodTable
	task      bool   // Task, or derived from it
	box       *boxType
	// name and fields are known once they were asked for.
	name   string
	fields map[string]field
}

// boxType is a type of objects that hold the state machine of an asynchronous method that has had to wait.
// Offsets are of the object that holds the machine.
type boxType struct {
	name, raw string
	machine   uint64 // the machine's MethodTable, if it is an object of its own; else 0
	at        uint64 // offset in the box of the machine, or of the reference to it
	size      uint64 // of the object that holds the machine
	state     uint64 // <>1__state
	builder   region // words of <>t__builder, one of which refers to the box
	awaiters  [][]uint64
	// unknown says that the fields of the machine are not known. The rest is not set then.
	unknown bool
}

// Bounds of types.
const (
	maxHeapTypes = 1 << 17
	maxParents   = 32
	maxBase      = 1 << 27 // bytes of an object without elements
	maxBox       = 1 << 15 // bytes of a box, or of a machine that is an object
	maxSeries    = 1 << 10
	maxBuilder   = 8       // words
	maxMachines  = 1 << 14 // types of state machines
)

// Names of types.
const (
	coreLib   = "System.Private.CoreLib"
	taskClass = "System.Threading.Tasks.Task"
)

// boxClasses are the types that hold state machines (src/libraries/System.Private.CoreLib/src/System/
// Runtime/CompilerServices/AsyncTaskMethodBuilderT.cs, PoolingAsyncValueTaskMethodBuilderT.cs). Their last
// type argument is the machine's type.
var boxClasses = map[string]bool{
	"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1":                 true,
	"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+DebugFinalizableAsyncStateMachineBox`1": true,
	"System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder`1+StateMachineBox`1":          true,
}

// typeAt returns the type of a MethodTable; one that is bad if there is no MethodTable there.
func (h *heapReader) typeAt(table uint64) *heapType {
	slot := &h.recent[(table>>4^table>>13)&uint64(len(h.recent)-1)]
	if t := *slot; t != nil && t.table == table {
		return t
	}
	t := h.typeOf(table, 0)
	*slot = t
	return t
}

func (h *heapReader) typeOf(table uint64, depth int) *heapType {
	if t, ok := h.types[table]; ok {
		return t
	}
	t := &heapType{table: table, bad: true}
	if len(h.types) >= maxHeapTypes || depth > maxParents {
		return t
	}
	h.types[table] = t // also if it is bad, so that it is asked for once
	h.load(t, depth)
	return t
}

// load reads a MethodTable (src/coreclr/vm/methodtable.h). It leads to the type's class, which leads
// back, or to the table of the type that it shares its class with. It is read from the process itself, because
// the type may be new.
func (h *heapReader) load(t *heapType, depth int) {
	vm, l := h.vm, &h.vm.lay.table
	if t.table == h.free && t.table != 0 {
		*t = heapType{table: t.table, base: minObject, component: 1, free: true}
		return
	}
	if t.table == 0 || t.table&7 != 0 || h.over() {
		return
	}
	var b [8]byte
	le := binary.LittleEndian
	word := func(at uint64) uint64 {
		if vm.mem.ReadAt(b[:], at) != nil {
			return 0
		}
		return le.Uint64(b[:])
	}
	flags := uint32(word(t.table + l.flags))
	base := word(t.table+l.base) & (1<<32 - 1)
	owner, class := t.table, word(t.table+l.class)
	if class&1 != 0 {
		owner = class &^ 1
		class = word(owner + l.class)
	}
	const least = 22 // string
	if class == 0 || class&7 != 0 || word(class+vm.lay.class.table) != owner || base < least || base > maxBase {
		return
	}
	t.bad, t.base = false, base
	if flags&tableHasComponents != 0 {
		t.component = uint64(flags & 0xffff)
	}
	parent := word(t.table + l.parent)
	if parent != 0 {
		t.task = h.typeOf(parent, depth+1).task
	}
	h.recognise(t)
}

// recognise finds out whether a type is Task, or one that holds state machines.
func (h *heapReader) recognise(t *heapType) {
	vm := h.vm
	table := vm.methodTable(t.table)
	if table.module == 0 || table.array() {
		return
	}
	m := vm.moduleAt(table.module)
	if m.meta == nil || m.name != coreLib {
		return
	}
	switch {
	case table.generic():
		if name, ok := m.meta.Type(table.row); ok && len(name.Names) == 2 && boxClasses[name.String()] {
			t.box = h.boxOf(t, table)
		}
	case !t.task && h.task == 0:
		if name, ok := m.meta.Type(table.row); ok && name.String() == taskClass {
			h.task, t.task = t.table, true
			of := vm.fieldsOf(t.table)
			flags, ok1 := of["m_stateFlags"]
			next, ok2 := of["m_continuationObject"]
			if ok1 && ok2 {
				h.flags, h.next = objectHeader+flags.off, objectHeader+next.off
			}
		}
	}
}

// objectHeader is the MethodTable at the beginning of an object, after which its fields are counted.
const objectHeader = 8

// boxOf describes a type that holds state machines.
func (h *heapReader) boxOf(t *heapType, table methodTable) *boxType {
	vm := h.vm
	b := &boxType{unknown: true, name: "[asynchronous method]"}
	if h.machines++; h.machines > maxMachines {
		return b
	}
	machine := vm.lastTypeArg(t.table, table)
	mt := vm.methodTable(machine)
	if machine == 0 || machine&2 != 0 || mt.module == 0 {
		return b
	}
	m := vm.moduleAt(mt.module)
	if m.meta == nil {
		return b
	}
	name, ok := m.meta.Type(mt.row)
	if !ok {
		return b
	}
	b.name, b.raw = readableMachine(name, vm.typeArgs(machine, mt, 0))
	field, ok := vm.fieldsOf(t.table)["StateMachine"]
	if !ok {
		return b
	}
	b.at = objectHeader + field.off
	// A MethodTable of values has the size of an object that holds one.
	mtype := h.typeOf(machine, maxParents)
	if mtype.bad || mtype.component != 0 || t.component != 0 || t.base > maxBox || mtype.base > maxBox || mtype.base < minObject {
		return b
	}
	if mt.flags&tableArrayMask == tableValue {
		b.size = t.base - objectHeader // without the word before the object
		fields := region{b.at, min(b.size, b.at+mtype.base-2*objectHeader)}
		b.unknown = !b.place(vm.fieldsOf(machine), fields, vm.references(t.table, t.base))
		return b
	}
	b.machine, b.size = machine, mtype.base-objectHeader
	b.unknown = !b.place(vm.fieldsOf(machine), region{objectHeader, b.size}, vm.references(machine, mtype.base))
	return b
}

// place finds the fields of a machine that are read: its state, what builds the task, and what it awaits, of
// which there is a field for each kind (dotnet/roslyn, src/Compilers/CSharp/Portable/Symbols/Synthesized/
// GeneratedNames.cs). in is the machine's part of the object, and references are the words of that that refer
// to objects. It is false if the fields are not these.
func (b *boxType) place(fields map[string]field, in region, references []uint64) bool {
	first := in.start
	end := func(f field) uint64 {
		end := in.end
		for _, other := range fields {
			if at := first + other.off; other.off > f.off && at < end {
				end = at
			}
		}
		return end
	}
	state, ok1 := fields["<>1__state"]
	builder, ok2 := fields["<>t__builder"]
	if !ok1 || !ok2 || first+state.off+4 > in.end || first+builder.off+8 > in.end || in.end > b.size {
		return false
	}
	b.state = first + state.off
	b.builder = region{first + builder.off, min(end(builder), first+builder.off+8*maxBuilder)}
	for name, f := range fields {
		if !strings.HasPrefix(name, "<>u__") {
			continue
		}
		var words []uint64
		to := end(f)
		for _, at := range references {
			if at >= first+f.off && at < to {
				words = append(words, at)
			}
		}
		if words != nil {
			b.awaiters = append(b.awaiters, words)
		}
	}
	return true
}

// readableMachine returns the name of the method that a state machine is of, and the machine's own name.
func readableMachine(t climeta.Type, args []string) (name, raw string) {
	return symbol.Printable(climeta.Readable(t, "MoveNext", args, nil)), symbol.Printable(t.String())
}

// lastTypeArg returns the handle of a type's last argument, 0 if it cannot be read (see typeArgs).
func (vm *VM) lastTypeArg(addr uint64, t methodTable) uint64 {
	all, ok := vm.mem.Word(addr + vm.lay.table.args)
	var b [8]byte
	if !t.generic() || !ok || all < 8 || !vm.mem.Bytes(all-8, b[:]) {
		return 0
	}
	dicts, args := binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:])
	if dicts == 0 || dicts > 256 || args == 0 || args > maxArgs {
		return 0
	}
	own, ok := vm.mem.Word(all + 8*uint64(dicts-1))
	if !ok {
		return 0
	}
	last, _ := vm.mem.Word(own + 8*uint64(args-1))
	return last
}

// references returns the offsets of the words of an object that refer to objects, in ascending order, nil
// if they cannot be read. They are described before the MethodTable: how many series of such words there
// are, and before that each series by its length, less the object's, and its offset
// (src/coreclr/gc/gcdesc.h).
func (vm *VM) references(table, base uint64) []uint64 {
	const hasPointers = 0x01000000
	if vm.methodTable(table).flags&(hasPointers|tableHasComponents) != hasPointers {
		return nil
	}
	count, ok := vm.mem.Word(table - 8)
	if !ok || count == 0 || count > maxSeries {
		return nil // negative for arrays of values
	}
	var out []uint64
	for i := range count {
		at := table - 24 - 16*i
		length, ok1 := vm.mem.Word(at)
		start, ok2 := vm.mem.Word(at + 8)
		length += base
		if !ok1 || !ok2 || start < objectHeader || start > base || length > base-start || (start|length)&7 != 0 {
			return nil
		}
		for w := start; w < start+length && len(out) < maxBox/8; w += 8 {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return out
}
