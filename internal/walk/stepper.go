package walk

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
)

// Memory is what a walk may read: the copy of the stack first, then the process. The target
// controls the content of all of it.
type Memory interface {
	// Word reads the 8 bytes at addr; false if they cannot be read.
	Word(addr uint64) (uint64, bool)
	// Bytes fills p from addr; false unless all of it could be read.
	Bytes(addr uint64, p []byte) bool
}

// Cursor is the position of a walk: the registers of the frame that is to be stepped over. Steppers
// change it in place.
type Cursor struct {
	Regs cpu.Registers // of this frame; Regs.PC is a return address unless Leaf

	// Leaf says that PC is the very instruction that the thread was stopped at (the innermost
	// frame, or one interrupted by a signal), so the frame may be half built and every register may
	// be trusted.
	Leaf bool

	// Unextended is the frame's stack pointer as the frame itself left it, which
	// differs from Regs.SP() where an adapter pushed arguments for its callee
	// (HotSpot's "unextended sp"). 0 means the same as SP.
	Unextended uint64

	// LeafCallee says that the frame that was just stepped over is code that its caller calls
	// without a safepoint (a stub, a C function), so the return address need not be described by
	// the runtime's tables.
	LeafCallee bool

	Stack   *Stack // where frames are appended
	Copy    StackCopy
	Other   StackCopy        // of a second stack; see capture.Snapshot
	OtherPC uint64           // the PC at which it continues
	Regions []capture.Region // other memory that was copied with the sample
	Mem     Memory           // the process, for anything outside the copy

	// Low and High are the bounds of the stack that the Cursor is on, 0 and 0 if they are not
	// known. A stepper that switches to another stack (a signal's, a virtual thread's in the heap)
	// sets them to its bounds or to 0. A change of them means that the stack pointer may now be
	// anywhere.
	Low, High uint64
	TID       uint32
	Time      uint64 // when the copy was made, ns; capture.Snapshot.Time

	Depth int // steps taken

	// Prov is how certain it is that the frame at the Cursor is really on the stack. A stepper that
	// found the caller by less than exact means raises it, and never lowers it unless something
	// else proves the new place (an anchor that a runtime keeps). The Walker ensures that no
	// appended frame claims to be more certain.
	Prov Provenance

	// Outside is set by Word when it read beyond the copy.
	Outside bool

	// Checked is set by a stepper that switches to a stack that was not copied, after it has
	// verified that the process is as it was when the copy was made. The Walker then does not check
	// that itself.
	Checked bool

	generated Stepper // the first stepper, if there are several

	scratch [16]byte // for AfterCall and Code, which must not allocate
}

// StackCopy is the copied part of the stack.
type StackCopy struct {
	Base  uint64 // address of Bytes[0]
	Bytes []byte
}

// Word reads a word of the stack, from the copies if they hold it, else from the process. Frames
// found by a read of the process are marked as stitched (see Outside).
func (c *Cursor) Word(addr uint64) (uint64, bool) {
	if off := addr - c.Copy.Base; off < uint64(len(c.Copy.Bytes)) && off+8 <= uint64(len(c.Copy.Bytes)) {
		b := c.Copy.Bytes[off : off+8 : off+8]
		return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56, true
	}
	return c.far(addr)
}

// far is Word for addresses outside the first copy.
func (c *Cursor) far(addr uint64) (uint64, bool) {
	if c.Other.holds(addr) {
		return binary.LittleEndian.Uint64(c.Other.Bytes[addr-c.Other.Base:]), true
	}
	if b := c.Copied(addr, 8); b != nil {
		return binary.LittleEndian.Uint64(b), true
	}
	c.Outside = true
	if c.Mem == nil {
		return 0, false
	}
	return c.Mem.Word(addr)
}

// Copied returns n bytes of memory from addr that were copied besides the stack, in one piece; nil
// if they were not.
func (c *Cursor) Copied(addr, n uint64) []byte {
	for i := range c.Regions {
		r := &c.Regions[i]
		if off := addr - r.Addr; off < uint64(len(r.Bytes)) && uint64(len(r.Bytes))-off >= n {
			return r.Bytes[off : off+n]
		}
	}
	return nil
}

// InCopy reports whether the word at addr was copied with the sample.
func (c *Cursor) InCopy(addr uint64) bool { return c.Copy.holds(addr) || c.Other.holds(addr) }

// Word reads a word of the copy.
func (s *StackCopy) Word(addr uint64) (uint64, bool) {
	if !s.holds(addr) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(s.Bytes[addr-s.Base:]), true
}

func (s *StackCopy) holds(addr uint64) bool {
	off := addr - s.Base
	return off < uint64(len(s.Bytes)) && off+8 <= uint64(len(s.Bytes))
}

// Generated reports whether addr lies in code that a runtime has generated: in that of the first
// stepper, if there are several.
func (c *Cursor) Generated(addr uint64) bool {
	return c.generated != nil && c.generated.Owns(addr)
}

// Verdict is the result of a Stepper's step.
type Verdict uint8

// The verdicts.
const (
	// Stepped means that the frame has been appended and the Cursor holds the caller's registers.
	Stepped Verdict = iota
	// Done means that the frame has been appended and was the thread's first.
	Done
	// Stuck means that the frame has been appended, but its caller could not be found; the walker
	// may guess.
	Stuck
	// NotMine means that nothing was appended; this code is not the stepper's after all.
	NotMine
	// Cut means that the frame has been appended, but its caller is on a stack that was not copied
	// and has changed since.
	Cut
	// Uncopied means that the frame has been appended, or had been before, and its callers are
	// those of a virtual thread, on a stack that was not copied.
	Uncopied
)

// Stepper knows how to step over one kind of code.
type Stepper interface {
	// Step appends the frame at the Cursor (or several, if the code stands for several) and moves
	// the Cursor to the caller. It must not allocate, and must return after a bounded number of
	// steps whatever the memory holds.
	Step(c *Cursor) Verdict
	// Owns reports whether pc lies in this stepper's code. It is called for every frame and must be
	// cheap.
	Owns(pc uint64) bool
}

// Stateful is a Stepper that may carry state from one frame to the next outside the Cursor.
type Stateful interface {
	// Settled reports whether it carries none at the moment.
	Settled() bool
}

// StackMover is a Stepper whose runtime may take a thread's frames off its stack and put others
// in their place from the outermost one inwards, as virtual threads do.
type StackMover interface {
	// MovesStacks reports whether it has been seen to do so in this process. Then a stack of
	// which a part was not copied is not completed from the process: its inner end may be what
	// it was while what lies above belongs to another virtual thread already.
	MovesStacks() bool
}
