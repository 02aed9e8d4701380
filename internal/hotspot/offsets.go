package hotspot

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
)

// offsets holds the offsets in this VM's structures that steps need, in bytes; vmstructs.Absent for
// those that the VM does not publish.
type offsets struct {
	// In a JavaThread.
	anchor           uint64 // its JavaFrameAnchor
	savedExceptionPC uint64
	vframeArrayHead  uint64 // not null while frames are being replaced by deoptimization
	contEntry        uint64 // innermost ContinuationEntry; published by JDK 25+, learnEntry before

	// In a JavaFrameAnchor.
	lastSP, lastPC, lastFP uint64

	// In a JavaCallWrapper.
	wrapperAnchor uint64

	// entryWrapper is the offset at which an entry frame holds its JavaCallWrapper, in bytes from
	// its frame pointer; it may be negative.
	entryWrapper int64

	upcallFrameData uint64 // UpcallStub: offset of its frame data offset (int32); JDK 25+
}

var offsetRows = []vmstructs.OffsetRow[offsets]{
	{To: func(o *offsets) *uint64 { return &o.anchor }, Fields: []string{"JavaThread::_anchor"}, Feature: "stacks of threads outside Java code"},
	{To: func(o *offsets) *uint64 { return &o.lastSP }, Fields: []string{"JavaFrameAnchor::_last_Java_sp"}, Feature: "stacks of threads outside Java code"},
	{To: func(o *offsets) *uint64 { return &o.lastPC }, Fields: []string{"JavaFrameAnchor::_last_Java_pc"}, Feature: "stacks of threads outside Java code"},
	{To: func(o *offsets) *uint64 { return &o.lastFP }, Fields: []string{"JavaFrameAnchor::_last_Java_fp"}, Feature: "stacks of threads outside Java code"},
	{To: func(o *offsets) *uint64 { return &o.savedExceptionPC }, Fields: []string{"JavaThread::_saved_exception_pc"}, Feature: "frames at loop polls"},
	{To: func(o *offsets) *uint64 { return &o.vframeArrayHead }, Fields: []string{"JavaThread::_vframe_array_head"}, Feature: "noticing deoptimization in progress"},
	{To: func(o *offsets) *uint64 { return &o.wrapperAnchor }, Fields: []string{"JavaCallWrapper::_anchor"}, Feature: "frames below native code"},
	{To: func(o *offsets) *uint64 { return &o.contEntry }, Fields: []string{"JavaThread::_cont_entry"}},
	{To: func(o *offsets) *uint64 { return &o.upcallFrameData }, Fields: []string{"UpcallStub::_frame_data_offset"}},
}

// entryWrapperSlots is the slot in which an entry frame holds its wrapper, in words from the frame
// pointer, if no constant says so (25 cpu/aarch64/frame_aarch64.hpp; x86 publishes it, because
// Windows differs).
var entryWrapperSlots = map[cpu.Arch]int64{cpu.AMD64: -6, cpu.ARM64: -8}

// newOffsets looks up the rows. What does not work is noted.
func newOffsets(vm *vmstructs.VM) offsets {
	o := vmstructs.Offsets(vm, offsetRows)
	o.entryWrapper = 8 * entryWrapperSlots[vm.Arch]
	if v, ok := vm.Ints["frame::entry_frame_call_wrapper_offset"]; ok {
		o.entryWrapper = 8 * int64(v)
	}
	return o
}
