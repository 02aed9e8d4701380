package hotspot

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
)

// absent marks an offset or an address that the VM does not publish.
const absent = ^uint64(0)

// offsets holds the offsets in this VM's structures, in bytes; absent for those that the VM does
// not publish.
type offsets struct {
	// In a JavaThread.
	anchor           uint64 // its JavaFrameAnchor
	threadState      uint64 // int32, see the state constants
	savedExceptionPC uint64
	vframeArrayHead  uint64 // not null while frames are being replaced by deoptimization
	vthread          uint64 // OopHandle of the mounted virtual thread's object; JDK 21+
	contEntry        uint64 // innermost ContinuationEntry; published by JDK 25+, learnEntry before
	stackBase        uint64 // highest address of the stack
	stackSize        uint64
	osThread         uint64
	threadObj        uint64 // oop up to JDK 11 (or so), OopHandle after
	threadNext       uint64 // up to JDK 11

	pendingMonitor uint64 // ObjectMonitor that the thread waits to enter, 0 for none
	waitingMonitor uint64 // ObjectMonitor that it waits on
	lockStack      uint64 // LockStack of the objects that it locked without a monitor; 21+
	ownerID        uint64 // by which monitors refer to it; 25+
	compilerEnv    uint64 // of a CompilerThread: ciEnv of the method it compiles, 0 for none

	osThreadID uint64 // int32 in an OSThread

	// In a JavaFrameAnchor.
	lastSP, lastPC, lastFP uint64

	// In a JavaCallWrapper.
	wrapperAnchor uint64

	// entryWrapper is the offset at which an entry frame holds its JavaCallWrapper, in bytes from
	// its frame pointer; it may be negative.
	entryWrapper int64

	upcallFrameData uint64 // UpcallStub: offset of its frame data offset (int32); JDK 25+
}

// States of a JavaThread (8 share/vm/utilities/globalDefinitions.hpp, the same since).
const (
	stateNew     = 2
	stateNative  = 4
	stateVM      = 6
	stateJava    = 8
	stateBlocked = 10
)

// offsetRow says which published field yields an offset.
type offsetRow struct {
	to      func(*offsets) *uint64
	fields  []string // the first that is published counts
	feature string   // what does not work without it; "" if some versions never have it
}

var offsetRows = []offsetRow{
	{func(o *offsets) *uint64 { return &o.anchor }, []string{"JavaThread::_anchor"}, "stacks of threads outside Java code"},
	{func(o *offsets) *uint64 { return &o.lastSP }, []string{"JavaFrameAnchor::_last_Java_sp"}, "stacks of threads outside Java code"},
	{func(o *offsets) *uint64 { return &o.lastPC }, []string{"JavaFrameAnchor::_last_Java_pc"}, "stacks of threads outside Java code"},
	{func(o *offsets) *uint64 { return &o.lastFP }, []string{"JavaFrameAnchor::_last_Java_fp"}, "stacks of threads outside Java code"},
	{func(o *offsets) *uint64 { return &o.threadState }, []string{"JavaThread::_thread_state"}, "thread states"},
	{func(o *offsets) *uint64 { return &o.savedExceptionPC }, []string{"JavaThread::_saved_exception_pc"}, "frames at loop polls"},
	{func(o *offsets) *uint64 { return &o.vframeArrayHead }, []string{"JavaThread::_vframe_array_head"}, "noticing deoptimization in progress"},
	{func(o *offsets) *uint64 { return &o.stackBase }, []string{"JavaThread::_stack_base", "Thread::_stack_base"}, "bounds of thread stacks"},
	{func(o *offsets) *uint64 { return &o.stackSize }, []string{"JavaThread::_stack_size", "Thread::_stack_size"}, "bounds of thread stacks"},
	{func(o *offsets) *uint64 { return &o.osThread }, []string{"JavaThread::_osthread", "Thread::_osthread"}, "recognising Java threads"},
	{func(o *offsets) *uint64 { return &o.osThreadID }, []string{"OSThread::_thread_id"}, "recognising Java threads"},
	{func(o *offsets) *uint64 { return &o.threadObj }, []string{"JavaThread::_threadObj"}, "names of Java threads"},
	{func(o *offsets) *uint64 { return &o.wrapperAnchor }, []string{"JavaCallWrapper::_anchor"}, "frames below native code"},
	{func(o *offsets) *uint64 { return &o.threadNext }, []string{"JavaThread::_next"}, ""},
	{func(o *offsets) *uint64 { return &o.vthread }, []string{"JavaThread::_vthread"}, ""},
	{func(o *offsets) *uint64 { return &o.contEntry }, []string{"JavaThread::_cont_entry"}, ""},
	{func(o *offsets) *uint64 { return &o.pendingMonitor }, []string{"JavaThread::_current_pending_monitor", "Thread::_current_pending_monitor"}, "monitors that threads wait for"},
	{func(o *offsets) *uint64 { return &o.waitingMonitor }, []string{"JavaThread::_current_waiting_monitor", "Thread::_current_waiting_monitor"}, "monitors that threads wait on"},
	{func(o *offsets) *uint64 { return &o.lockStack }, []string{"JavaThread::_lock_stack"}, ""},
	{func(o *offsets) *uint64 { return &o.ownerID }, []string{"JavaThread::_monitor_owner_id"}, ""},
	{func(o *offsets) *uint64 { return &o.compilerEnv }, []string{"CompilerThread::_env"}, ""},
	{func(o *offsets) *uint64 { return &o.upcallFrameData }, []string{"UpcallStub::_frame_data_offset"}, ""},
}

// entryWrapperSlots is the slot in which an entry frame holds its wrapper, in words from the frame
// pointer, if no constant says so (25 cpu/aarch64/frame_aarch64.hpp; x86 publishes it, because
// Windows differs).
var entryWrapperSlots = map[cpu.Arch]int64{cpu.AMD64: -6, cpu.ARM64: -8}

// newOffsets looks up the rows; missing is called for what does not work.
func newOffsets(t *vmstructs.Tables, arch cpu.Arch, missing func(field, feature string)) offsets {
	var o offsets
	for _, r := range offsetRows {
		f := t.Field(r.fields...)
		*r.to(&o) = absent
		if f.OK {
			*r.to(&o) = f.Offset
		} else if r.feature != "" {
			missing(r.fields[0], r.feature)
		}
	}
	o.entryWrapper = 8 * entryWrapperSlots[arch]
	if v, ok := t.Ints["frame::entry_frame_call_wrapper_offset"]; ok {
		o.entryWrapper = 8 * int64(v)
	}
	return o
}
