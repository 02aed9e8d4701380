package winsuspend

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/wine"
	"github.com/candid-profiler/candid/internal/winsys"
)

// process is a target.
type process struct {
	pid     int
	handle  windows.Handle
	created int64
	threads map[uint32]*thread
	waits   waitCalls
	seen    uint64 // the round in which it was last in the list
	cpu     uint64 // ns, when it was last listed; for the whole machine only

	dispatcher *wine.Dispatcher // nil: none, or not found yet
	asked      int              // how often it was looked for
	goProcess
}

// maxStacks is how many stacks of a thread are known: more than one if it runs fibers.
const maxStacks = 8

// thread is a thread of a target. It is used by the sampling goroutine only, but for lost and full.
type thread struct {
	tid     uint32
	proc    *process
	handle  windows.Handle
	change  windows.Handle // thread state change object, 0: none
	created int64          // FILETIME
	teb     uint64
	sought  bool                 // stacks has been looked for
	stacks  [maxStacks][2]uint64 // lowest address, and the one above it
	nstacks int
	next    int       // of stacks, to be replaced
	own     [2]uint64 // the stack that Windows gave it; 0: not known
	goThread
	suspends *[2]uint32 // how often it was suspended when it was last stopped, and when it was resumed

	account
	cpu    uint64 // ns, as the kernel last counted
	cycles uint64
	hot    uint64 // ns: it may run until then
	ran    uint64 // ns: when it last was known to
	seen   uint64 // the round in which it was last in the list

	// For wall time.
	wall   uint64        // ns: until when samples have accounted for it
	sleep  uint64        // identifies its sleep, 0: it does not sleep
	pc, sp uint64        // where it was found asleep
	looked uint64        // ns: when
	lost   atomic.Uint64 // ns of samples that were not taken
	full   atomic.Bool   // the next sample must have a stack
}

// openProcess opens a target.
func openProcess(pid int) (*process, error) {
	// The errors are those of package target, which knows why a process cannot be opened.
	t, err := target.Open(pid)
	if err != nil {
		return nil, err
	}
	t.Close()
	h, err := windows.OpenProcess(windows.PROCESS_VM_READ|windows.PROCESS_QUERY_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	p := &process{pid: pid, handle: h, threads: map[uint32]*thread{}}
	var c, e, k, u windows.Filetime
	if windows.GetProcessTimes(h, &c, &e, &k, &u) == nil {
		p.created = int64(c.HighDateTime)<<32 | int64(c.LowDateTime)
	}
	return p, nil
}

func (p *process) close() {
	for _, th := range p.threads {
		th.close()
	}
	clear(p.threads)
	windows.CloseHandle(p.handle)
}

// outcome returns how the process ended.
func (p *process) outcome() target.Outcome {
	var code uint32
	if windows.GetExitCodeProcess(p.handle, &code) != nil {
		return target.Outcome{}
	}
	return target.Outcome{Known: true, Code: int(code)}
}

// alive reports whether the process still runs.
func (p *process) alive() bool {
	ev, err := windows.WaitForSingleObject(p.handle, 0)
	return err != nil || ev != windows.WAIT_OBJECT_0
}

// Offsets in the 64-bit TEB (phnt's ntpebteb.h): the stack's base, and the lowest address that is
// reserved for it, to which it may grow.
const (
	tebStackBase  = 0x08
	tebStackLimit = 0x10
	tebReserved   = 0x1478 // DeallocationStack
)

// openThread opens a thread of the process. objects says to make a thread state change object.
func (p *process) openThread(tid uint32, objects bool) (*thread, error) {
	const rights = windows.THREAD_SUSPEND_RESUME | windows.THREAD_GET_CONTEXT | windows.THREAD_QUERY_INFORMATION
	h, err := windows.OpenThread(rights, false, tid)
	if err != nil {
		return nil, err
	}
	th := &thread{tid: tid, proc: p, handle: h, suspends: new([2]uint32)}
	if th.created, th.cpu, _ = winsys.ThreadTimes(h); objects {
		th.change = newStateChange(h)
	}
	th.cycles, _ = winsys.Cycles(h)
	return th, nil
}

func (th *thread) close() {
	if th.change != 0 {
		windows.CloseHandle(th.change)
	}
	windows.CloseHandle(th.handle)
	th.handle, th.change = 0, 0
}

// findStack reads the stack that the thread is on from its TEB.
func (th *thread) findStack() {
	var b [8]byte
	word := func(off uint64) uint64 {
		if th.teb == 0 || !winsys.ReadMemory(th.proc.handle, th.teb+off, b[:]) {
			return 0
		}
		return binary.LittleEndian.Uint64(b[:])
	}
	base, low := word(tebStackBase), word(tebReserved)
	if low == 0 || low >= base {
		low = word(tebStackLimit)
	}
	if low != 0 && low < base {
		th.own = [2]uint64{low, base}
	}
	th.addStack(low, base)
}

func (th *thread) addStack(low, high uint64) bool {
	if low == 0 || low >= high || high-low > 1<<30 {
		return false
	}
	for i := range th.nstacks {
		if th.stacks[i] == [2]uint64{low, high} {
			return false
		}
	}
	if th.nstacks < maxStacks {
		th.stacks[th.nstacks] = [2]uint64{low, high}
		th.nstacks++
		return true
	}
	th.stacks[th.next] = [2]uint64{low, high}
	th.next = (th.next + 1) % maxStacks
	return true
}

// foundAt adds the stack that a stack pointer lies in: the thread has switched to another one, a
// fiber's, or one that the program made itself. It reports whether that one is new.
func (th *thread) foundAt(sp uint64) bool {
	before := th.nstacks + th.next
	th.findStack()
	if th.nstacks+th.next != before {
		return true
	}
	info, ok := winsys.RegionAt(th.proc.handle, sp)
	return ok && th.addStack(uint64(info.AllocationBase), uint64(info.BaseAddress)+uint64(info.RegionSize))
}

// copyAttempts is how often a thread is stopped at most for one sample.
const copyAttempts = 3

// copyThread stops a thread for a copy of its stack. It stops the thread again if it was on a stack
// that was not known and is found, or between two stacks, and if its stack could not be read: Wine's
// server, which reads it, now and then fails to on a busy machine. Registers and stack are those of
// the last stop. took is called with how long each stop took, in ns.
func (s *stopper) copyThread(th *thread, w *watchman, out *taken, took func(ns uint64)) verdict {
	if !th.sought {
		// Most threads of a program with many are never copied: all of them wait.
		th.sought, th.teb = true, winsys.TEB(th.handle)
		th.findStack()
	}
	th.findM()
	for left := copyAttempts - 1; ; left-- {
		v := s.stop(th, w, out)
		took(out.stood)
		if again := th.examine(v, out); !again || left == 0 {
			return v
		}
	}
}

// examine looks at a copy, and reports whether the thread has to be stopped again.
func (th *thread) examine(v verdict, out *taken) (again bool) {
	switch v {
	case elsewhere:
		return th.betweenStacks(out) || th.onGoroutine(out) || th.foundAt(out.addr)
	case copied:
		if len(out.stack) == 0 {
			return true
		}
		th.undoDispatch(out)
		return th.goes && th.onGoroutine(out)
	}
	return false
}

// bytes is how much memory was copied.
func (t *taken) bytes() int { return len(t.stack) + len(t.other) }

// snapshot makes a sample of what was copied, in a buffer with room for all of it or none.
func (th *thread) snapshot(t *taken, event uint16, state capture.State, buffer []byte) *sample {
	both := append(append(buffer[:0], t.stack...), t.other...)
	n := len(t.stack)
	return &sample{th: th, snap: capture.Snapshot{
		Time: t.time, PID: uint32(th.proc.pid), TID: th.tid, Event: event, State: state,
		Regs: t.regs, StackAddr: t.addr, Stack: both[:n], StackTop: t.top, Flags: t.flags,
		OtherAddr: t.otherAddr, OtherPC: t.otherPC, Other: both[n:],
	}}
}

// waitCalls are where a process's threads stand while they wait: the system calls of ntdll that do.
type waitCalls struct {
	base uint64 // of ntdll in the process
	size uint64
}

// waiting are the system calls that wait for something.
var waiting = []string{
	"NtWaitForSingleObject", "NtWaitForMultipleObjects", "NtDelayExecution", "NtWaitForAlertByThreadId", "NtRemoveIoCompletion",
	"NtRemoveIoCompletionEx", "NtWaitForWorkViaWorkerFactory", "NtSignalAndWaitForSingleObject", "NtWaitForKeyedEvent", "NtReleaseKeyedEvent",
	"NtSuspendThread", "NtReplyWaitReceivePort", "NtReplyWaitReceivePortEx", "NtAlpcSendWaitReceivePort", "NtRequestWaitReplyPort", "NtWaitLowEventPair",
	"NtWaitHighEventPair", "NtYieldExecution",
}

// stubBytes is more than the stub of a system call has.
const stubBytes = 32

// waitOffsets are the offsets of these calls in ntdll, which is the same file in all processes.
var waitOffsets = func() map[uint64]bool {
	out := map[uint64]bool{}
	base := uint64(ntdllHandle())
	for _, name := range waiting {
		if f := ntdll.NewProc(name); f.Find() == nil {
			for i := range uint64(stubBytes) {
				out[uint64(f.Addr())-base+i] = true
			}
		}
	}
	return out
}

func ntdllHandle() windows.Handle {
	var h windows.Handle
	name, _ := windows.UTF16PtrFromString("ntdll.dll")
	_ = windows.GetModuleHandleEx(windows.GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, name, &h)
	return h
}

// find looks for ntdll in the process.
func (w *waitCalls) find(p *process) {
	for _, l := range winsys.LoadedImages(p.handle) {
		if equalFold(target.BaseName(l.Path), "ntdll.dll") {
			w.base, w.size = l.Base, l.Size
			return
		}
	}
}
