package emulate

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
)

// Addresses of what a call has of its own, in the kernel's half of the address space: no process has
// memory there. The stack grows down from callStack.
const (
	callStack  = 0xffff_8000_0000_0000
	callReturn = callStack - 1<<32
	callArgs   = 320 // bytes of the return address and the arguments on the stack

	// Scratch is the address of memory that a call has of its own, and ScratchSize its size in bytes. It
	// is zero when the function begins.
	Scratch     = callStack + callArgs
	ScratchSize = 1024
)

// MaxCallArgs is how many arguments Call passes at most.
const MaxCallArgs = 4 + (callArgs-8-40)/8

// ErrCall says that a function was not executed to its end.
var ErrCall = errors.New("the function cannot be executed to its end")

// nothingNear is a Nearby that never learns.
var nothingNear = &Nearby{}

// Convention is how arguments, all of them integers, are passed to a function.
type Convention uint8

// The conventions.
const (
	SystemV Convention = iota // on Unix
	Windows                   // Microsoft, "x64 calling convention"
)

// registers returns the registers of the first arguments, and how far above the return address the
// others are on the stack, in bytes.
func (c Convention) registers() (first []uint8, above int) {
	if c == Windows {
		return []uint8{1, 2, 8, 9}, 8 + 4*8 // rcx, rdx, r8, r9, for which there is room on the stack
	}
	return []uint8{7, 6, 2, 1, 8, 9}, 8 // rdi, rsi, rdx, rcx, r8, r9
}

// Call executes the function at pc, with arguments as a convention passes them, until it
// returns. It executes at most so many instructions. All registers but those of the arguments are
// unknown, and so is the memory that space does not have. The error wraps ErrCall.
func (m *Machine) Call(c Convention, pc uint64, args []uint64, steps int, code *Code, space Space) error {
	if len(args) > MaxCallArgs {
		return fmt.Errorf("%d arguments: %w", len(args), ErrCall)
	}
	m.Branches, m.Steps, m.At = m.Branches[:0], 0, pc
	m.late, m.ended = false, false
	m.code, m.space = code, space
	m.state = state{pc: pc, flagsOK: direction}
	// At the beginning of a function the stack pointer is 8 above a multiple of 16.
	const sp = callStack + 8
	stack := make([]byte, callArgs+ScratchSize)
	binary.LittleEndian.PutUint64(stack[sp-callStack:], callReturn)
	m.r[rsp], m.known[rsp] = sp, 0xff
	inRegisters, above := c.registers()
	for i, v := range args {
		if i < len(inRegisters) {
			m.r[inRegisters[i]], m.known[inRegisters[i]] = v, 0xff
		} else {
			binary.LittleEndian.PutUint64(stack[sp-callStack+above+8*(i-len(inRegisters)):], v)
		}
	}
	m.mem.begin(&capture.Snapshot{Stack: stack, StackAddr: callStack}, space, nothingNear)
	for ; m.Steps < steps; m.Steps++ {
		if m.pc == callReturn {
			return nil
		}
		o := code.at(m.pc, space)
		if o == nil {
			return m.failed(NoCode)
		}
		m.At, m.branched = o.pc, false
		if m.step(o); m.ended {
			return m.failed(m.why)
		}
		if !m.branched {
			m.pc = o.next
		}
	}
	return m.failed(Limit)
}

// failed returns why a call did not return.
func (m *Machine) failed(why Why) error {
	return fmt.Errorf("it ends %s, %#x, after %d instructions: %w", why.Text(), m.At, m.Steps, ErrCall)
}

// Returned returns the result of the last call, of so many bytes; false if it is not known.
func (m *Machine) Returned(size uint8) (uint64, bool) {
	v := value{m.r[0], m.known[0], false}
	return v.v & bitsMask(size), v.whole(size)
}

// Stored returns a number of up to 8 bytes that the last call left at an address of its own memory, or
// elsewhere; false if it is not known.
func (m *Machine) Stored(addr uint64, size uint8) (uint64, bool) {
	if size == 0 || size > 8 {
		return 0, false
	}
	v := m.mem.load(addr, size)
	return v.v & bitsMask(size), v.whole(size)
}
