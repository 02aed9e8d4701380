package capture

import (
	"fmt"
	"math/bits"
	"slices"
)

// Follow describes how to find the memory, besides the thread's stack, in which a runtime keeps the
// rest of that stack. An engine executes the steps while the thread is stopped, and what OpCopy
// steps name becomes Snapshot.Regions. So the engine gets the way from the runtime, and needs no
// knowledge of it.
//
// The steps operate on Registers values of 64 bits. After a step that fails execution continues
// with step No, after any other with the next one. It ends after the last step, or when an engine
// has done as much for one sample as it is willing to: what was copied until then is delivered.
type Follow struct {
	Steps     []Step
	Reference Reference
}

// Limits of a Follow.
const (
	MaxSteps  = 64
	Registers = 16
	// StepsEnd as a Step's No ends execution.
	StepsEnd = 255
)

// Step is one instruction of a Follow.
type Step struct {
	Op       Op
	Dst, Src uint8 // indices into the Registers values
	No       uint8 // index of the step to continue with if this one fails
	Arg      uint32
	Imm      uint64
}

// Op is what a step does.
type Op uint8

// Operations; the BPF programs use the same numbers.
const (
	OpSet       Op = iota // dst = Imm
	OpRegister            // dst = the thread's register with the DWARF number Arg
	OpThread              // dst = the thread pointer, from which thread-local variables are reached
	OpAdd                 // dst = src + Imm
	OpSum                 // dst += src
	OpLess                // dst -= src
	OpShift               // dst <<= Arg
	OpLoad                // dst = the 8 bytes at src + Imm; fails if they cannot be read
	OpLoad4               // the same for 4 bytes
	OpReference           // dst = what the reference at src + Imm refers to; fails if it is null
	OpOnStack             // fails unless dst is an aligned address on the thread's stack, in its live part
	OpNotZero             // fails if dst is 0
	OpCount               // dst--; fails if it was 0 (at most 2³² counts)
	OpJump                // continues with No
	OpCopy                // copies the memory at dst, Arg bytes or, if that is 0, src bytes; fails if that is too much
	numOps
)

// Reference describes how references in the runtime's heap are decoded to addresses.
type Reference struct {
	Kind  ReferenceKind
	Shift uint8
	Base  uint64
}

// ReferenceKind is a kind of Reference.
type ReferenceKind uint8

// Kinds of Reference.
const (
	PlainReference   ReferenceKind = iota // 8 bytes, the address
	NarrowReference                       // 4 bytes: Base + value << Shift
	ShiftedReference                      // 8 bytes: value >> Shift
	// ColoredReference: 8 bytes, one of the bits 12 to 15 is set, and the address begins above it.
	ColoredReference
)

// Check returns what is wrong with a Follow, nil if nothing is.
func (f *Follow) Check() error {
	if len(f.Steps) == 0 || len(f.Steps) > MaxSteps {
		return fmt.Errorf("a way of %d steps: 1 to %d are possible", len(f.Steps), MaxSteps)
	}
	for i, s := range f.Steps {
		if s.Op >= numOps || s.Dst >= Registers || s.Src >= Registers {
			return fmt.Errorf("step %d of a way makes no sense: %+v", i, s)
		}
	}
	return nil
}

// Followed executes a Follow for an engine that reads a thread's memory itself. It may be used
// again for the next thread.
type Followed struct {
	// Load reads memory of the thread's process, while the thread is stopped; it fills b or fails.
	Load func(b []byte, addr uint64) bool
	// Register returns a register by its DWARF number; false if it is not known.
	Register func(n uint32) (uint64, bool)
	Thread   uint64 // the thread pointer; 0: not known
	SP, Top  uint64 // the live part of the stack; Top is 0 if it is not known
	Most     int    // bytes to copy at most

	Regions []Region // what was copied; the Bytes are in Room
	Room    []byte
	values  [Registers]uint64
	word    [8]byte
}

const (
	mostSteps   = 2048
	mostRegions = 64
	// nearStack is how far above the stack pointer a stack may end if its top is not known.
	nearStack = 64 << 20
	lowest    = 4096 // no valid address is below
)

// Go executes the steps, and leaves what they copied in Regions.
func (r *Followed) Go(f *Follow) {
	r.Regions, r.Room = r.Regions[:0], r.Room[:0]
	clear(r.values[:])
	at := 0
	for range mostSteps {
		if at >= len(f.Steps) {
			break
		}
		if s := &f.Steps[at]; s.Op != OpJump && r.step(f, s) {
			at++
		} else {
			at = int(s.No)
		}
	}
	// Room may have moved while it grew.
	off := 0
	for i := range r.Regions {
		n := len(r.Regions[i].Bytes)
		r.Regions[i].Bytes = r.Room[off : off+n : off+n]
		off += n
	}
}

func (r *Followed) load(addr, n uint64) (uint64, bool) {
	if addr < lowest || !r.Load(r.word[:n], addr) {
		return 0, false
	}
	v := uint64(0)
	for i := range n {
		v |= uint64(r.word[i]) << (8 * i)
	}
	return v, true
}

// step executes one step; false if it fails.
func (r *Followed) step(f *Follow, s *Step) (ok bool) {
	dst, src := &r.values[s.Dst%Registers], r.values[s.Src%Registers]
	var v uint64
	switch s.Op {
	case OpSet:
		*dst = s.Imm
	case OpRegister:
		if v, ok = r.Register(s.Arg); ok {
			*dst = v
		}
		return ok
	case OpThread:
		*dst = r.Thread
		return r.Thread != 0
	case OpAdd:
		*dst = src + s.Imm
	case OpSum:
		*dst += src
	case OpLess:
		*dst -= src
	case OpShift:
		*dst <<= s.Arg & 63
	case OpLoad, OpLoad4:
		n := uint64(8)
		if s.Op == OpLoad4 {
			n = 4
		}
		if v, ok = r.load(src+s.Imm, n); ok {
			*dst = v
		}
		return ok
	case OpReference:
		if v, ok = r.reference(&f.Reference, src+s.Imm); ok {
			*dst = v
		}
		return ok
	case OpOnStack:
		return *dst >= r.SP && *dst-r.SP < nearStack && *dst&7 == 0 && (r.Top == 0 || *dst < r.Top)
	case OpNotZero:
		return *dst != 0
	case OpCount:
		*dst--
		return *dst < 1<<32
	case OpCopy:
		return r.copy(*dst, s.Arg, src)
	default:
		return false
	}
	return true
}

func (r *Followed) reference(how *Reference, addr uint64) (uint64, bool) {
	n := uint64(8)
	if how.Kind == NarrowReference {
		n = 4
	}
	v, ok := r.load(addr, n)
	if !ok || v == 0 {
		return 0, false
	}
	switch how.Kind {
	case NarrowReference:
		v = how.Base + v<<(how.Shift&63)
	case ShiftedReference:
		v >>= how.Shift & 63
	case ColoredReference:
		if k := v >> 12 & 15; k != 0 {
			v >>= 13 + bits.TrailingZeros64(k)
		}
	}
	return v, v != 0
}

func (r *Followed) copy(addr uint64, fixed uint32, length uint64) bool {
	if fixed != 0 {
		length = uint64(fixed)
	}
	at := len(r.Room)
	if addr < lowest || length == 0 || length > uint64(r.Most) || at+int(length) > r.Most || len(r.Regions) == mostRegions {
		return false
	}
	r.Room = slices.Grow(r.Room, int(length))[:at+int(length)]
	if !r.Load(r.Room[at:], addr) {
		r.Room = r.Room[:at]
		return true // like the BPF programs, which copy later
	}
	r.Regions = append(r.Regions, Region{Addr: addr, Bytes: r.Room[at:]})
	return true
}
