package winsuspend

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/winsuspend/guard"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/winsys"
)

// stopThread suspends a thread, copies its registers and its stack, and resumes it. It is not called
// by Go but by the system's calling convention, at stopThreadAddr.
func stopThread()

// stopThreadAddr is the address of stopThread.
var stopThreadAddr uintptr

// cycles reads the processor's time stamp counter.
func cycles() uint64

// request is what stopThread is given and fills. The assembly has the offsets from go_asm.h. Addresses
// in it are of memory that Go does not move: the heap, and pages of the system.
type request struct {
	suspend [5]uint64 // the function, and its first four arguments; two more are 0
	context [3]uint64 // the function, the thread and registers
	read    uint64    // NtReadVirtualMemory
	process uint64
	buffer  uint64
	room    uint64 // bytes
	got     uint64 // bytes that were read
	resume  [5]uint64
	state   uint64 // address of the state that the guard reads
	stacks  uint64 // address of pairs of addresses: the lowest of a stack, and the one above it
	nstacks uint64
	addr    uint64 // the thread's stack pointer
	top     uint64 // end of the stack that it is on
	begun   uint64 // time stamp counter before suspending
	ended   uint64 // and after resuming
	// NTSTATUS of each call; those that were not made are 0.
	suspended, contexted, copied, resumed int32
	registers                             uint64 // address of a CONTEXT
	stop                                  uint64 // the state of the stop, in the phase guard.Free
	found                                 uint64 // how the guard has interfered

	// A thread that is on its own stack may have been sent there by a goroutine, whose stack is then
	// copied too.
	ownLow, ownHigh uint64    // the thread's own stack; ownHigh is 0 if it runs no Go code
	curg            uint64    // where its struct m has the current goroutine
	m               uint64    // the struct m
	g               [9]uint64 // the first goBytes bytes of the goroutine's struct g
	gGot            uint64    // bytes of g that were read
	other           uint64    // address of what was copied
	otherBuffer     uint64
	otherRoom       uint64
	otherGot        uint64
}

// Values of request.found: whether the guard has interfered.
const (
	uncontested    = 0
	contestedFail  = 1 // the thread could not be suspended
	contestedStop  = 2 // the guard came before candid resumed the thread
	contestedAfter = 3 // candid has resumed it
)

// Parts of CONTEXT (winnt.h), and its flags.
const (
	contextSize  = 1232
	contextFlags = 0x30
	contextRAX   = 0x78 // rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15
	contextRIP   = 0xf8

	contextControlInteger = 0x100003 // CONTEXT_AMD64 | CONTEXT_CONTROL | CONTEXT_INTEGER
)

// order are the DWARF numbers of the registers in a CONTEXT.
var order = [16]uint8{
	cpu.RAX, cpu.RCX, cpu.RDX, cpu.RBX, cpu.RSP, cpu.RBP, cpu.RSI, cpu.RDI,
	cpu.R8, cpu.R9, cpu.R10, cpu.R11, cpu.R12, cpu.R13, cpu.R14, cpu.R15,
}

// stopper stops one thread at a time. It belongs to one goroutine.
type stopper struct {
	req    *request
	regs   []byte // a CONTEXT, aligned
	buffer []byte // for a stack
	other  []byte // for a goroutine's
	pin    runtime.Pinner
	byObj  bool // thread state change objects are used

	fnSuspend, fnResume, fnChange uint64
}

// largestStack is how much of a stack is copied at most, in bytes: 8 MiB is the largest that linkers
// and runtimes reserve unless they are told to.
const largestStack = 8 << 20

// largestOther is how much is copied of the stack of a goroutine whose call runs on the thread's own, in
// bytes.
const largestOther = 256 << 10

// supported returns why threads cannot be stopped here, nil if they can.
func supported() error {
	for _, name := range []string{"NtSuspendThread", "NtResumeThread", "NtGetContextThread", "NtReadVirtualMemory"} {
		if err := ntdll.NewProc(name).Find(); err != nil {
			return fmt.Errorf("suspend threads: %w: %w", capture.ErrUnsupported, err)
		}
	}
	return nil
}

func addressOf(name string) uint64 { return uint64(ntdll.NewProc(name).Addr()) }

// newStopper makes a stopper that copies at most that many bytes of a stack. byObjects says to use
// thread state change objects.
func newStopper(most int, byObjects bool) *stopper {
	s := &stopper{req: new(request), buffer: make([]byte, most), other: make([]byte, min(most, largestOther)), byObj: byObjects}
	raw := make([]byte, contextSize+16)
	off := -uintptr(unsafe.Pointer(&raw[0])) & 15
	s.regs = raw[off : off+contextSize]
	s.pin.Pin(s.req)
	s.pin.Pin(&raw[0])
	s.pin.Pin(&s.buffer[0])
	s.pin.Pin(&s.other[0])
	// The pages are touched, so that the first copies take no longer.
	for _, b := range [][]byte{s.buffer, s.other} {
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	r := s.req
	r.context[0], r.read = addressOf("NtGetContextThread"), addressOf("NtReadVirtualMemory")
	r.registers = uint64(uintptr(unsafe.Pointer(&s.regs[0])))
	r.context[2], r.buffer, r.room = r.registers, uint64(uintptr(unsafe.Pointer(&s.buffer[0]))), uint64(most)
	r.otherBuffer, r.otherRoom = uint64(uintptr(unsafe.Pointer(&s.other[0]))), uint64(len(s.other))
	s.fnSuspend, s.fnResume = addressOf("NtSuspendThread"), addressOf("NtResumeThread")
	if byObjects {
		s.fnChange = addressOf("NtChangeThreadState")
	}
	return s
}

func (s *stopper) close() { s.pin.Unpin() }

// taken is what stop found.
type taken struct {
	time  uint64 // ns, when the thread was stopped
	regs  cpu.Registers
	addr  uint64 // of stack
	stack []byte // the stopper's; valid until the next stop
	top   uint64
	flags capture.Flags
	stood uint64 // ns that the thread was suspended

	// The stack of the goroutine that has called what runs on the thread's own; see capture.Snapshot.
	other              []byte // the stopper's
	otherAddr, otherPC uint64
}

// Results of stop besides success.
type verdict uint8

const (
	copied    verdict = iota
	refused           // the thread could not be suspended: it has ended
	elsewhere         // its stack pointer is in none of the stacks that are known
	unread            // its registers could not be read
	void              // the guard has let go of it meanwhile: the copy is worth nothing
)

// stop suspends a thread, copies it and resumes it. out is the copy if the verdict is copied, or
// elsewhere, which has no stack.
func (s *stopper) stop(th *thread, w *watchman, out *taken) verdict {
	r, page := s.req, w.page
	h := uint64(th.handle)
	before, told := winsys.SuspendCount(th.handle)
	if !told {
		before = th.suspends[0]
	}
	r.suspend = [5]uint64{s.fnSuspend, h, uint64(uintptr(unsafe.Pointer(&th.suspends[0]))), 0, 0}
	r.resume = [5]uint64{s.fnResume, h, uint64(uintptr(unsafe.Pointer(&th.suspends[1]))), 0, 0}
	if th.change != 0 {
		const suspendIt, resumeIt = 0, 1 // THREAD_STATE_CHANGE_TYPE
		r.suspend = [5]uint64{s.fnChange, uint64(th.change), h, suspendIt, 0}
		r.resume = [5]uint64{s.fnChange, uint64(th.change), h, resumeIt, 0}
	}
	r.stop = page.Name(th.tid, uint32(th.proc.pid), th.created, before)
	r.state = uint64(uintptr(unsafe.Pointer(&page.State)))
	r.process, r.context[1] = uint64(th.proc.handle), h
	r.stacks, r.nstacks = uint64(uintptr(unsafe.Pointer(&th.stacks[0]))), uint64(th.nstacks)
	r.got, r.addr, r.top, r.found = 0, 0, 0, uncontested
	r.suspended, r.contexted, r.copied, r.resumed = 0, 0, 0, 0
	r.ownHigh, r.otherGot = 0, 0
	if th.m != 0 && th.proc.curg != 0 {
		r.ownLow, r.ownHigh, r.m, r.curg = th.own[0], th.own[1], th.m, th.m+th.proc.curg
	}
	binary.LittleEndian.PutUint32(s.regs[contextFlags:], contextControlInteger)
	begun := winsys.Clock()
	syscall.SyscallN(stopThreadAddr, uintptr(unsafe.Pointer(r)))
	runtime.KeepAlive(th)
	out.time = begun
	out.stood = cyclesNS(r.ended - r.begun)
	if r.found != uncontested {
		until := winsys.CounterNS(s.contested(th, w))
		if until == 0 {
			until = winsys.Clock()
		}
		out.stood = until - min(begun, until)
	}
	switch {
	case r.found == contestedStop:
		return void // what was copied by then may be of the running thread
	case r.suspended < 0:
		return refused
	case r.contexted < 0:
		return unread
	}
	out.regs = cpu.Registers{PC: binary.LittleEndian.Uint64(s.regs[contextRIP:]), Known: cpu.AllKnown, Arch: cpu.AMD64}
	for i, n := range order {
		out.regs.R[n] = binary.LittleEndian.Uint64(s.regs[contextRAX+8*i:])
	}
	out.addr, out.top, out.flags = r.addr, r.top, 0
	out.stack = s.buffer[:min(r.got, uint64(len(s.buffer)))]
	out.other, out.otherAddr, out.otherPC = nil, 0, 0
	if n := min(r.otherGot, uint64(len(s.other))); n > 8 && r.other&7 == 0 {
		out.other, out.otherAddr, out.otherPC = s.other[:n], r.other, r.g[goPC/8]
	}
	switch {
	case r.top == 0:
		out.stack = nil
		out.flags |= capture.StackUnread
		return elsewhere
	case len(out.stack) == 0:
		out.flags |= capture.StackUnread
	case out.addr+uint64(len(out.stack)) < out.top:
		out.flags |= capture.StackCut
	}
	return copied
}

var suspendThread = ntdll.NewProc("NtSuspendThread")

// contested ends a stop with which the guard has interfered. It returns the performance counter when
// the guard resumed the thread, 0 if it did not.
func (s *stopper) contested(th *thread, w *watchman) (freed uint64) {
	r := s.req
	return w.page.Contested(guard.Stop{
		State: r.stop, Suspended: r.suspended >= 0, Resumed: r.found == contestedAfter, Was: th.suspends[1],
		Suspend: func() { _, _, _ = suspendThread.Call(uintptr(th.handle), 0) },
		Resume: func() uint32 {
			was, err := windows.ResumeThread(th.handle)
			if err != nil {
				return 0
			}
			return was
		},
		Count: func() uint32 {
			n, _ := winsys.SuspendCount(th.handle)
			return n
		},
		Gone: w.gone,
	})
}
