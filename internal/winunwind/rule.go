package winunwind

import (
	"fmt"
	"math"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
)

// Reader reads an image, or the memory around generated code, by addresses relative to its base.
type Reader interface {
	// ReadRVA fills p from rva; false unless all of it could be read.
	ReadRVA(p []byte, rva uint32) bool
}

// Memory reads a process's memory; walk.Memory is one.
type Memory interface {
	Bytes(addr uint64, p []byte) bool
}

// At is a Reader of what lies in a process's memory at Base and behind it.
type At struct {
	Memory Memory
	Base   uint64
}

// ReadRVA implements Reader.
func (a At) ReadRVA(p []byte, rva uint32) bool { return a.Memory.Bytes(a.Base+uint64(rva), p) }

// Unwinder makes rules from unwind information. It may be used by several goroutines if its Reader
// may be.
type Unwinder struct {
	// Reader reads unwind information, and the code at the innermost frame.
	Reader Reader
	// Find returns the function that contains rva; false if there is none. It may be nil. It tells a
	// jump to another part of the same function from one that leaves it.
	Find func(rva uint32) (Function, bool)
	// Unix says that the code is called by the System V convention, as CoreCLR's is on Unix, and
	// that operation 11 may occur.
	Unix bool
}

// maxChain bounds chained entries, as in Windows.
const maxChain = 32

// hardware maps the processor's numbers of registers to DWARF's.
var hardware = [16]uint8{cpu.RAX, cpu.RCX, cpu.RDX, cpu.RBX, cpu.RSP, cpu.RBP, cpu.RSI, cpu.RDI,
	cpu.R8, cpu.R9, cpu.R10, cpu.R11, cpu.R12, cpu.R13, cpu.R14, cpu.R15}

// Registers that a called function preserves: Microsoft, "x64 calling convention"; System V AMD64
// psABI 3.2.1.
const (
	keepUnix    = 1<<cpu.RBX | 1<<cpu.RBP | 1<<cpu.R12 | 1<<cpu.R13 | 1<<cpu.R14 | 1<<cpu.R15
	keepWindows = keepUnix | 1<<cpu.RSI | 1<<cpu.RDI
)

// Leaf returns the rule of a function without an entry: it has changed neither the stack pointer nor
// a register that has to be preserved. The rule is shared.
func (u *Unwinder) Leaf() *ehframe.Rule {
	if u.Unix {
		return &leafUnix
	}
	return &leafWindows
}

var (
	leafUnix    = ehframe.Rule{CFAReg: cpu.RSP, CFAOff: 8, RA: atCFA(returnAddress, -8), Keep: keepUnix, Simple: true}
	leafWindows = ehframe.Rule{CFAReg: cpu.RSP, CFAOff: 8, RA: atCFA(returnAddress, -8), Keep: keepWindows, Simple: true}
)

// returnAddress is the DWARF column of the return address.
const returnAddress = 16

func atCFA(reg uint8, off int32) ehframe.Save {
	return ehframe.Save{Reg: reg, How: ehframe.AtCFA, Off: off}
}

// Rule returns how to get to the caller of a frame of f that stopped at the address pc, relative to
// the base. leaf says that the thread was stopped at pc itself, so that it may be within the
// prologue or an epilogue; otherwise pc is a return address, or one less. The error wraps ErrFormat.
func (u *Unwinder) Rule(f Function, pc uint32, leaf bool) (*ehframe.Rule, error) {
	var buf [MaxInfoSize]byte
	f, err := u.follow(f)
	if err != nil {
		return nil, err
	}
	info, err := u.info(f, &buf)
	if err != nil {
		return nil, err
	}
	off := uint32(math.MaxUint32)
	if f.Contains(pc) {
		off = pc - f.Begin
	}
	if leaf && off >= uint32(info.Prolog) && u.mayEnd(f, &info, pc) {
		if r := u.epilogue(f, info, pc); r != nil {
			return r, nil
		}
	}
	s, err := u.frame(f, info, off)
	if err != nil {
		return nil, err
	}
	return s.rule()
}

// frame undoes all prologues of f, the first of which had been executed up to off bytes from f's
// start.
func (u *Unwinder) frame(f Function, info Info, off uint32) (state, error) {
	s := newState(u.Unix)
	var buf [MaxInfoSize]byte
	for links := 0; ; links++ {
		err := s.undo(&info, off)
		if err != nil {
			return s, fmt.Errorf("function at %#x: %w", f.Begin, err)
		}
		if info.Flags&FlagChained == 0 {
			return s, nil
		}
		if links == maxChain {
			return s, fmt.Errorf("function at %#x: more than %d chained entries: %w", f.Begin, maxChain, ErrFormat)
		}
		// The chained part's prologue was complete before this one was entered.
		off = math.MaxUint32
		if f, err = u.follow(info.Chain); err != nil {
			return s, err
		}
		if info, err = u.info(f, &buf); err != nil {
			return s, err
		}
	}
}

// follow resolves entries that refer to another entry.
func (u *Unwinder) follow(f Function) (Function, error) {
	for n := 0; n < maxChain; n++ {
		at, ok := f.Indirect()
		if !ok {
			return f, nil
		}
		var b [FunctionSize]byte
		if !u.Reader.ReadRVA(b[:], at) {
			return f, fmt.Errorf("read the RUNTIME_FUNCTION at %#x: %w", at, ErrFormat)
		}
		f = ParseFunction(b[:])
	}
	return f, fmt.Errorf("RUNTIME_FUNCTION of %#x refers to more than %d others: %w", f.Begin, maxChain, ErrFormat)
}

// info reads the UNWIND_INFO of f into buf.
func (u *Unwinder) info(f Function, buf *[MaxInfoSize]byte) (Info, error) {
	if !u.Reader.ReadRVA(buf[:headerSize], f.Unwind) {
		return Info{}, fmt.Errorf("read the UNWIND_INFO at %#x: %w", f.Unwind, ErrFormat)
	}
	n := InfoSize(buf[:headerSize])
	if n > headerSize && !u.Reader.ReadRVA(buf[headerSize:n], f.Unwind+headerSize) {
		return Info{}, fmt.Errorf("read %d bytes of UNWIND_INFO at %#x: %w", n, f.Unwind, ErrFormat)
	}
	return Parse(buf[:n])
}
