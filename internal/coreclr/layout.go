package coreclr

import "fmt"

// layout is where a runtime keeps what is read of it: offsets in bytes, and a few constants.
// 0 means that a field is not known, unless it is known to be at 0.
type layout struct {
	// Sections of code (src/coreclr/vm/codeman.h: RangeSection, RangeSectionFragment).
	section struct{ begin, end, flags, module, heap, list uint64 }
	frag    struct{ next, begin, end, section uint64 }
	// A heap's node (codeman.h: HeapList, in 10 CodeHeapListNode).
	heap struct{ base, nibbles uint64 }
	// A method's header, to which the word before its code points (codeman.h: RealCodeHeader).
	header struct{ debug, method, unwinds, unwind uint64 }
	// pointers says that the map of nibbles holds pointers too, as since 10
	// (src/coreclr/vm/nibblemapmacros.h).
	pointers bool
	packed   bool   // the debug information of a method is packed by bits, as since 10
	lastStub uint64 // header values up to this one are kinds of stubs

	ready struct{ info, header, composite, functions, count, methods uint64 } // ReadyToRunInfo; info is Module's

	desc    struct{ flags3, chunk, flags uint64 } // MethodDesc (vm/method.hpp)
	chunk   struct{ size, table, tokens uint64 }  // MethodDescChunk
	dynamic struct{ name, flags uint64 }          // DynamicMethodDesc, and its StoredSigMethodDesc
	generic struct{ args, flags, count uint64 }   // InstantiatedMethodDesc

	table struct{ flags, base, flags2, parent, module, class, args uint64 } // MethodTable (vm/methodtable.h)
	// tokenShift is by how much the type's row is shifted in MethodTable's flags2.
	tokenShift uint
	typ        struct{ kind, arg, token, module uint64 } // TypeDesc, ParamTypeDesc, TypeVarTypeDesc (vm/typedesc.h)
	rank       uint64                                    // ArrayClass
	class      struct{ table, fields uint64 }            // EEClass (vm/class.h)

	module struct{ path, base, simple, file, metadata uint64 } // Module (vm/ceeload.h)
	// image is the way from a Module's PEAssembly to the image: PEAssembly, PEImage, the layouts'
	// places in it (loaded, then flat), and the base in a layout.
	image struct{ assembly, file, loaded, flat, base uint64 }

	thread struct{ id, os, link, state, handle, blocking uint64 } // Thread (vm/threads.h); blocking is its ThreadDebugBlockingInfo
	store  struct{ first, count uint64 }                          // ThreadStore
	// alloc is the way from a Thread to the memory that it allocates in: Thread, RuntimeThreadLocals,
	// EEAllocContext (vm/gcheaputilities.h, since 10), GCAllocContext (gc/gcinterface.h).
	alloc struct{ locals, context, inner, pointer, limit uint64 }
	// monitor is AwareLock (vm/syncblk.h); kind is DebugBlockingItem's (vm/threaddebugblockinginfo.h).
	monitor struct{ owner, index, kind uint64 }
	slots   struct{ threadStore, syncTable, strings uint64 } // places of variables in g_dacTable, where there is no descriptor
	gc      struct{ heap, kind uint64 }                      // places of g_pGCHeap and g_heap_type in it

	code  struct{ data, state, first uint64 }       // MethodDesc, MethodDescCodeData, MethodDescVersioningState: the way to the versions of code
	nodes struct{ code, next, method, tier uint64 } // NativeCodeVersionNode (vm/codeversion.h)
}

// Offsets that have not changed from 8 to 10: those of 10 are published, and those of 8 and 9 were
// compared with the runtime's own perf map on 8.0.30, 9.0.1 and 9.0.5. They are also in
// open-telemetry/opentelemetry-ebpf-profiler, interpreter/dotnet/data.go.
func common() layout {
	var l layout
	l.section.begin, l.section.end, l.section.flags, l.section.module, l.section.heap, l.section.list = 0, 8, 16, 32, 40, 48
	l.frag.next, l.frag.begin, l.frag.end, l.frag.section = 0, 8, 16, 24
	l.heap.base, l.heap.nibbles = 32, 40
	l.header.debug, l.header.method, l.header.unwinds, l.header.unwind = 0, 24, 32, 36
	l.lastStub = 15
	l.ready.header, l.ready.composite, l.ready.functions, l.ready.count = 16, 40, 80, 88
	l.desc.flags3, l.desc.chunk, l.desc.flags = 0, 2, 6
	l.chunk.size, l.chunk.table, l.chunk.tokens = 24, 0, 18
	l.dynamic.name, l.dynamic.flags = 32, 28
	l.generic.args, l.generic.flags, l.generic.count = 24, 32, 34
	l.table.flags, l.table.base, l.table.flags2, l.table.parent = 0, 4, 8, 16
	l.table.module, l.table.class, l.table.args = 24, 40, 48
	l.tokenShift = 8
	l.typ.kind, l.typ.arg, l.typ.token, l.typ.module = 0, 16, 40, 16
	l.rank = 72
	l.class.table, l.class.fields = 16, 24
	l.image.file, l.image.base = 8, 8
	l.monitor.owner, l.monitor.index, l.monitor.kind = 16, 28, 16
	l.nodes.code, l.nodes.method, l.nodes.next, l.nodes.tier = 0, 8, 24, 36
	return l
}

// layoutOf returns the layout of a major version, without what it publishes itself. The values in
// it were found in the releases named in common, those of 8 for Windows in 8.0.30: critical sections, which
// are parts of Module, ReadyToRunInfo and ThreadStore, are smaller there, and g_dacTable has one variable of
// the collector more. 9 for Windows was not available.
func layoutOf(major int, windows bool) (layout, error) {
	l := common()
	if windows && major == 9 {
		return l, fmt.Errorf("CoreCLR 9 is not known on Windows, 8 and 10 are: %w", ErrVersion)
	}
	switch major {
	case 8:
		l.ready.info, l.ready.methods = 0x480, 432
		l.tokenShift = 16
		// MethodDesc has a word less.
		l.generic.args, l.generic.flags, l.generic.count = 16, 24, 26
		l.dynamic.name, l.dynamic.flags = 24, 20
		l.module.simple, l.module.path = 0x108, 0
		l.image.assembly, l.image.loaded, l.image.flat = 0x110, 0x78, 0x70
		l.thread.id, l.thread.os, l.thread.link, l.thread.handle, l.thread.blocking = 32, 424, 232, 432, 1192
		l.store.first = 160
		l.slots.threadStore, l.slots.syncTable, l.slots.strings = 16, 80, 43
		l.gc.heap, l.gc.kind = 37, 19
		if windows {
			l.ready.info, l.ready.methods = 0x2a0, 336
			l.module.simple = 0xa8
			l.image.assembly = 0xb0
			l.thread.os, l.thread.link, l.thread.handle, l.thread.blocking = 440, 248, 448, 1232
			l.store.first = 64
			l.slots.syncTable, l.slots.strings = 82, 44
			l.gc.heap = 38
		}
	case 9:
		l.ready.info, l.ready.methods = 0x3d8, 432
		l.module.simple, l.module.path, l.module.base = 0x108, 0x110, 0x120
		l.image.assembly, l.image.loaded, l.image.flat = 0x118, 0x78, 0x70
		l.code.data, l.code.state, l.code.first = 8, 0, 16
		l.thread.blocking = 1032
		l.gc.heap, l.gc.kind = 41, 19
	case 10:
		l.pointers, l.packed = true, true
		l.thread.blocking = 672
		l.gc.heap, l.gc.kind = 40, 18
		if windows {
			l.thread.blocking = 696
			l.gc.heap = 41
		}
	default:
		return l, fmt.Errorf("CoreCLR %d is not known: %w", major, ErrVersion)
	}
	return l, nil
}

// publish replaces what the runtime's descriptor publishes.
func (l *layout) publish(d *descriptor) {
	for _, f := range []struct {
		to    *uint64
		typ   string
		field string
	}{
		{&l.section.begin, "RangeSection", "RangeBegin"},
		{&l.section.end, "RangeSection", "RangeEndOpen"},
		{&l.section.flags, "RangeSection", "Flags"},
		{&l.section.module, "RangeSection", "R2RModule"},
		{&l.section.heap, "RangeSection", "HeapList"},
		{&l.frag.next, "RangeSectionFragment", "Next"},
		{&l.frag.begin, "RangeSectionFragment", "RangeBegin"},
		{&l.frag.end, "RangeSectionFragment", "RangeEndOpen"},
		{&l.frag.section, "RangeSectionFragment", "RangeSection"},
		{&l.heap.base, "CodeHeapListNode", "MapBase"},
		{&l.heap.nibbles, "CodeHeapListNode", "HeaderMap"},
		{&l.header.debug, "RealCodeHeader", "DebugInfo"},
		{&l.header.method, "RealCodeHeader", "MethodDesc"},
		{&l.header.unwinds, "RealCodeHeader", "NumUnwindInfos"},
		{&l.header.unwind, "RealCodeHeader", "UnwindInfos"},
		{&l.ready.info, "Module", "ReadyToRunInfo"},
		{&l.ready.header, "ReadyToRunInfo", "ReadyToRunHeader"},
		{&l.ready.composite, "ReadyToRunInfo", "CompositeInfo"},
		{&l.ready.functions, "ReadyToRunInfo", "RuntimeFunctions"},
		{&l.ready.count, "ReadyToRunInfo", "NumRuntimeFunctions"},
		{&l.ready.methods, "ReadyToRunInfo", "EntryPointToMethodDescMap"},
		{&l.desc.flags3, "MethodDesc", "Flags3AndTokenRemainder"},
		{&l.desc.chunk, "MethodDesc", "ChunkIndex"},
		{&l.desc.flags, "MethodDesc", "Flags"},
		{&l.chunk.size, "MethodDescChunk", "!"},
		{&l.chunk.table, "MethodDescChunk", "MethodTable"},
		{&l.chunk.tokens, "MethodDescChunk", "FlagsAndTokenRange"},
		{&l.dynamic.name, "DynamicMethodDesc", "MethodName"},
		{&l.dynamic.flags, "StoredSigMethodDesc", "ExtendedFlags"},
		{&l.generic.args, "InstantiatedMethodDesc", "PerInstInfo"},
		{&l.generic.flags, "InstantiatedMethodDesc", "Flags2"},
		{&l.generic.count, "InstantiatedMethodDesc", "NumGenericArgs"},
		{&l.table.flags, "MethodTable", "MTFlags"},
		{&l.table.base, "MethodTable", "BaseSize"},
		{&l.table.flags2, "MethodTable", "MTFlags2"},
		{&l.table.parent, "MethodTable", "ParentMethodTable"},
		{&l.table.module, "MethodTable", "Module"},
		{&l.table.class, "MethodTable", "EEClassOrCanonMT"},
		{&l.table.args, "MethodTable", "PerInstInfo"},
		{&l.typ.kind, "TypeDesc", "TypeAndFlags"},
		{&l.typ.arg, "ParamTypeDesc", "TypeArg"},
		{&l.typ.token, "TypeVarTypeDesc", "Token"},
		{&l.typ.module, "TypeVarTypeDesc", "Module"},
		{&l.rank, "ArrayClass", "Rank"},
		{&l.class.table, "EEClass", "MethodTable"},
		{&l.class.fields, "EEClass", "FieldDescList"},
		{&l.module.path, "Module", "Path"},
		{&l.module.base, "Module", "Base"},
		{&l.module.file, "Module", "FileName"},
		{&l.module.metadata, "Module", "DynamicMetadata"},
		{&l.image.assembly, "Module", "PEAssembly"},
		{&l.image.file, "PEAssembly", "PEImage"},
		{&l.image.loaded, "PEImage", "LoadedImageLayout"},
		{&l.image.base, "PEImageLayout", "Base"},
		{&l.thread.id, "Thread", "Id"},
		{&l.thread.os, "Thread", "OSId"},
		{&l.thread.link, "Thread", "LinkNext"},
		{&l.thread.state, "Thread", "State"},
		{&l.thread.handle, "Thread", "GCHandle"},
		{&l.alloc.locals, "Thread", "RuntimeThreadLocals"},
		{&l.alloc.context, "RuntimeThreadLocals", "AllocContext"},
		{&l.alloc.inner, "EEAllocContext", "GCAllocationContext"},
		{&l.alloc.pointer, "GCAllocContext", "Pointer"},
		{&l.alloc.limit, "GCAllocContext", "Limit"},
		{&l.store.first, "ThreadStore", "FirstThreadLink"},
		{&l.store.count, "ThreadStore", "ThreadCount"},
		{&l.code.data, "MethodDesc", "CodeData"},
		{&l.code.state, "MethodDescCodeData", "VersioningState"},
		{&l.code.first, "MethodDescVersioningState", "NativeCodeVersionNode"},
		{&l.nodes.code, "NativeCodeVersionNode", "NativeCode"},
		{&l.nodes.next, "NativeCodeVersionNode", "Next"},
		{&l.nodes.method, "NativeCodeVersionNode", "MethodDesc"},
	} {
		if off, ok := d.field(f.typ, f.field); ok {
			*f.to = off
		}
	}
	if v, ok := d.global("StubCodeBlockLast"); ok {
		l.lastStub = v
	}
	if l.module.path >= 8 && l.module.simple == 0 {
		l.module.simple = l.module.path - 8 // the field before it, in every version
	}
}
