// Package capture defines what every way of stopping a thread produces, a Snapshot, and what it is
// asked for, an Event. The engines are the packages below it.
package capture

import "github.com/candid-profiler/candid/internal/cpu"

// Snapshot is one sample as it was taken: the registers and the live stack of a
// thread. Its slices belong to the engine and are valid only until the function
// that was handed the Snapshot returns. The stack bytes are the user's data:
// they are never written to a file, a log or the network.
type Snapshot struct {
	Time   uint64 // ns, CLOCK_MONOTONIC
	Weight uint64 // what the sample stands for, in the event's unit (ns for cpu)
	PID    uint32 // thread group, in candid's pid namespace
	TID    uint32
	CPU    uint32
	Event  uint16 // index into Options.Events
	State  State  // of the thread
	// Syscall is the number of the system call that the thread is in, plus 1; 0 means none, or not
	// known.
	Syscall uint32
	// Sleep distinguishes the sleeps of a thread, and samples of it that may turn out to stand for
	// more time, for SleepSink; 0: nothing is repeated.
	Sleep uint64

	// Regs are the thread's user-mode registers. Regs.PC is 0 if the thread has none (a kernel
	// thread).
	Regs cpu.Registers

	// Kernel is the kernel's call chain, innermost first, without the frames of
	// the sampling interrupt; empty if the thread was in user mode.
	Kernel []uint64

	// Stack is a copy of memory from StackAddr up. StackAddr is at most the
	// stack pointer (a red zone below it may be included).
	StackAddr uint64
	Stack     []byte

	// StackTop is the address just above the thread's stack as the engine knows
	// it, 0 if it does not. If StackAddr+len(Stack) < StackTop the copy was cut.
	StackTop uint64
	Flags    Flags

	// Other is a copy of the live part of a second stack, from OtherAddr up, if the thread was
	// running on a stack of its own on behalf of another one (a goroutine's). It is nil if there is
	// none or the engine does not know of any. OtherPC is where that stack will continue, with the
	// stack pointer 8 above OtherAddr; 0 if that is not known.
	OtherAddr uint64
	OtherPC   uint64
	Other     []byte

	// Regions are what the process's Follow led to, copied at the same moment as the stack, in the
	// order of its steps; none if there is no Follow, or if it failed at once.
	Regions []Region
}

// Region is a copy of a part of a process's memory.
type Region struct {
	Addr  uint64
	Bytes []byte
}

// Ran is set in Snapshot.Sleep if the thread ran.
const Ran = 1 << 63

// Flags of a Snapshot.
type Flags uint8

const (
	// InKernel: the thread was running kernel code.
	InKernel Flags = 1 << iota
	// StackCut: the engine copied as much as it could and knows that the live
	// stack goes on.
	StackCut
	// StackUnread: the stack could not be read at all (paged out, no such page). With NoUser: the
	// thread ran at an unknown place.
	StackUnread
	// NoUser: the thread has no user-mode registers.
	NoUser
	// StackHoles: pages of the stack were absent (never written, or swapped out); the copy holds
	// zeros for them.
	StackHoles
	// Continued: the sample continues the sleep that the thread's last sample of this event
	// reported.
	Continued
)
