package threads

import "github.com/candid-profiler/candid/internal/hotspot/vmstructs"

// offsets holds the offsets in a JavaThread, and what it leads to, in bytes; vmstructs.Absent
// for those that the VM does not publish.
type offsets struct {
	threadState uint64 // int32, see the state constants
	vthread     uint64 // OopHandle of the mounted virtual thread's object; JDK 21+
	stackBase   uint64 // highest address of the stack
	stackSize   uint64
	osThread    uint64
	threadObj   uint64 // oop up to JDK 11 (or so), OopHandle after
	threadNext  uint64 // up to JDK 11

	pendingMonitor uint64 // ObjectMonitor that the thread waits to enter, 0 for none
	waitingMonitor uint64 // ObjectMonitor that it waits on
	lockStack      uint64 // LockStack of the objects that it locked without a monitor; 21+
	ownerID        uint64 // by which monitors refer to it; 25+
	compilerEnv    uint64 // of a CompilerThread: ciEnv of the method it compiles, 0 for none

	osThreadID uint64 // int32 in an OSThread
}

// States of a JavaThread (8 share/vm/utilities/globalDefinitions.hpp, the same since).
const (
	stateNew     = 2
	stateNative  = 4
	stateVM      = 6
	stateJava    = 8
	stateBlocked = 10
)

var offsetRows = []vmstructs.OffsetRow[offsets]{
	{To: func(o *offsets) *uint64 { return &o.threadState }, Fields: []string{"JavaThread::_thread_state"}, Feature: "thread states"},
	{To: func(o *offsets) *uint64 { return &o.stackBase }, Fields: []string{"JavaThread::_stack_base", "Thread::_stack_base"}, Feature: "bounds of thread stacks"},
	{To: func(o *offsets) *uint64 { return &o.stackSize }, Fields: []string{"JavaThread::_stack_size", "Thread::_stack_size"}, Feature: "bounds of thread stacks"},
	{To: func(o *offsets) *uint64 { return &o.osThread }, Fields: []string{"JavaThread::_osthread", "Thread::_osthread"}, Feature: "recognising Java threads"},
	{To: func(o *offsets) *uint64 { return &o.osThreadID }, Fields: []string{"OSThread::_thread_id"}, Feature: "recognising Java threads"},
	{To: func(o *offsets) *uint64 { return &o.threadObj }, Fields: []string{"JavaThread::_threadObj"}, Feature: "names of Java threads"},
	{To: func(o *offsets) *uint64 { return &o.threadNext }, Fields: []string{"JavaThread::_next"}},
	{To: func(o *offsets) *uint64 { return &o.vthread }, Fields: []string{"JavaThread::_vthread"}},
	{To: func(o *offsets) *uint64 { return &o.pendingMonitor }, Fields: []string{"JavaThread::_current_pending_monitor", "Thread::_current_pending_monitor"}, Feature: "monitors that threads wait for"},
	{To: func(o *offsets) *uint64 { return &o.waitingMonitor }, Fields: []string{"JavaThread::_current_waiting_monitor", "Thread::_current_waiting_monitor"}, Feature: "monitors that threads wait on"},
	{To: func(o *offsets) *uint64 { return &o.lockStack }, Fields: []string{"JavaThread::_lock_stack"}},
	{To: func(o *offsets) *uint64 { return &o.ownerID }, Fields: []string{"JavaThread::_monitor_owner_id"}},
	{To: func(o *offsets) *uint64 { return &o.compilerEnv }, Fields: []string{"CompilerThread::_env"}},
}
