// Package cpu names the registers that walking a stack needs, the same way for
// every operating system and every engine that stops a thread.
package cpu

import "runtime"

// Arch is a processor architecture that candid walks stacks of.
type Arch uint8

// The architectures.
const (
	AMD64 Arch = iota + 1
	ARM64
)

// String returns the architecture's name as Go spells it.
func (a Arch) String() string {
	switch a {
	case AMD64:
		return "amd64"
	case ARM64:
		return "arm64"
	}
	return "unknown architecture"
}

// Host returns the architecture of this machine; AMD64 if it is neither.
func Host() Arch {
	if runtime.GOARCH == "arm64" {
		return ARM64
	}
	return AMD64
}

// Registers of x86-64 by their DWARF numbers (System V AMD64 psABI, figure 3.36).
const (
	RAX = 0
	RDX = 1
	RCX = 2
	RBX = 3
	RSI = 4
	RDI = 5
	RBP = 6
	RSP = 7
	R8  = 8
	R9  = 9
	R10 = 10
	R11 = 11
	R12 = 12
	R13 = 13
	R14 = 14
	R15 = 15
)

// Registers of AArch64 by their DWARF numbers (AADWARF64): x0 to x30 are 0 to 30.
const (
	X3  = 3  // Go keeps a return address here while a stack grows
	X6  = 6  // Go resumes a goroutine through it
	X28 = 28 // the running goroutine, in Go
	X29 = 29 // frame pointer
	X30 = 30 // link register
	XSP = 31 // stack pointer
)

// NumRegs is how many general registers Registers holds; every DWARF number
// below it is a valid index.
const NumRegs = 32

// Registers is a thread's general registers, indexed by DWARF number. For the
// caller's frames only the registers in Known are meaningful.
type Registers struct {
	PC    uint64
	R     [NumRegs]uint64
	Known uint32 // bit n: R[n] holds the frame's value
	Arch  Arch
	// FlagsKnown says that Flags holds x86-64's RFLAGS. Only the frame at which a thread was stopped
	// has them, and not from every engine.
	FlagsKnown bool
	Flags      uint64
}

// AllKnown marks every register of a thread that was just stopped.
const AllKnown = ^uint32(0)

// SP returns the stack pointer.
func (r *Registers) SP() uint64 {
	if r.Arch == ARM64 {
		return r.R[XSP]
	}
	return r.R[RSP]
}

// SetSP sets the stack pointer.
func (r *Registers) SetSP(v uint64) {
	if r.Arch == ARM64 {
		r.R[XSP] = v
		return
	}
	r.R[RSP] = v
}

// FP returns the frame pointer register, whatever the code uses it for.
func (r *Registers) FP() uint64 {
	if r.Arch == ARM64 {
		return r.R[X29]
	}
	return r.R[RBP]
}

// SetFP sets the frame pointer register.
func (r *Registers) SetFP(v uint64) {
	if r.Arch == ARM64 {
		r.R[X29] = v
		return
	}
	r.R[RBP] = v
}
