package walk

import (
	"bytes"
	"sync/atomic"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
)

// Bounds of a walk. They are for hostile and broken stacks; the deepest real ones, runaway
// recursions, have some 10,000 frames.
const (
	DefaultMaxFrames = 16384
	searchWords      = 1024    // of stack searched for a return address
	maxFrameSize     = 8 << 20 // bytes; a larger step is rejected
	checkBytes       = 512     // bytes compared where a copy was cut
	maxOwners        = 8
)

// Walker walks the stacks of one process. It is used from one goroutine.
type Walker struct {
	// MaxFrames is the limit on the frames of one stack.
	MaxFrames int

	// Cache, if not nil, keeps walks so that the next walk of the same thread can reuse the outer
	// part of the last. Renew must then be called whenever what the steppers know of the process
	// may have changed.
	Cache *WalkCache

	id    uint64 // unique among all Walkers
	epoch uint64
	marks []mark // of the current walk, innermost first

	arch      cpu.Arch
	code      Code
	steppers  [maxOwners + 1]Stepper    // by owner index
	unsettled [maxOwners + 1]Stateful   // those of them that are
	movers    [maxOwners + 1]StackMover // likewise
	joiners   [maxOwners + 1]Joiner     // likewise
	joins     bool                      // there are joiners
	n         int
	cursor    Cursor
	check     [checkBytes]byte
}

var walkers atomic.Uint64

// New returns a Walker for threads of the given architecture. code may be nil; then nothing is
// guessed.
func New(arch cpu.Arch, code Code) *Walker {
	return &Walker{arch: arch, code: code, MaxFrames: DefaultMaxFrames, id: walkers.Add(1)}
}

// Add appends a stepper and returns the index that its frames have as their Owner. Index 0 belongs
// to no stepper: kernel frames and frames of unknown code have it. At most 8 steppers can be added;
// the result is 0 for any further one.
func (w *Walker) Add(s Stepper) uint8 {
	if w.n == maxOwners {
		return 0
	}
	w.n++
	w.steppers[w.n] = s
	w.unsettled[w.n], _ = s.(Stateful)
	w.movers[w.n], _ = s.(StackMover)
	if j, ok := s.(Joiner); ok {
		w.joiners[w.n], w.joins = j, true
	}
	return uint8(w.n)
}

// Stepper returns the stepper with an owner index, nil if there is none.
func (w *Walker) Stepper(owner uint8) Stepper {
	if int(owner) > w.n {
		return nil
	}
	return w.steppers[owner]
}

// Walk fills out with the stack in the snapshot. mem reads the process as it is now; it may be nil
// if only the copy is to be used.
func (w *Walker) Walk(snap *capture.Snapshot, mem Memory, out *Stack) {
	out.Reset()
	for _, pc := range snap.Kernel {
		if len(out.Frames) >= w.MaxFrames {
			break
		}
		f := Frame{PC: pc, Kind: KindKernel}
		if len(out.Frames) > 0 {
			f.Flags = ReturnAddress
		}
		out.Push(f)
	}
	if snap.Flags&capture.NoUser != 0 {
		if snap.Flags&capture.StackUnread != 0 {
			out.End = EndUnread
		}
		return
	}
	c := &w.cursor
	*c = Cursor{Regs: snap.Regs, Leaf: true, Stack: out, Mem: mem, TID: snap.TID, Time: snap.Time, High: snap.StackTop,
		Copy: StackCopy{snap.StackAddr, snap.Stack}, Other: StackCopy{snap.OtherAddr, snap.Other}, OtherPC: snap.OtherPC, Regions: snap.Regions}
	if c.Regs.Arch == 0 {
		c.Regs.Arch = w.arch
	}
	if w.n > 1 {
		c.generated = w.steppers[1]
	}
	var r *trail
	if w.Cache != nil {
		r = w.Cache.of(w, snap)
	}
	if r == nil {
		w.run(c, snap, nil, 0)
	} else {
		w.follow(c, snap, r)
	}
	c.Stack, c.Mem, c.Copy.Bytes, c.Other.Bytes, c.Regions = nil, nil, nil, nil, nil
}

// follow walks with the help of the thread's last walk, and stores this one.
func (w *Walker) follow(c *Cursor, snap *capture.Snapshot, r *trail) {
	out, same := c.Stack, r.same(snap)
	w.marks = w.marks[:0]
	w.run(c, snap, r, same)
	if out.Same == 0 {
		r.frames, r.marks = 0, r.marks[:0]
	}
	if out.End != EndComplete || out.Stitched || c.Outside || c.Low != 0 || c.High != snap.StackTop {
		r.forget()
		return
	}
	w.Cache.keep(r, snap, same, out, w.marks)
}

// run steps until the walk ends, or reaches a place from which it continues like the thread's last
// walk, r, whose stack was unchanged from same on. r may be nil.
func (w *Walker) run(c *Cursor, snap *capture.Snapshot, r *trail, same uint64) {
	out := c.Stack
	stitched, checked := FrameFlags(0), false
	for {
		if len(out.Frames) >= w.MaxFrames {
			w.end(c, EndTruncated)
			return
		}
		if r != nil {
			if m, ok := c.marked(snap.StackTop); ok && w.settled() {
				if i := r.meet(&m, same); i >= 0 && len(out.Frames)+int(r.marks[i].frames) <= w.MaxFrames {
					r.takeOver(i, out)
					return
				}
				if len(w.marks) < trailMarks {
					m.frames = uint32(len(out.Frames))
					w.marks = append(w.marks, m)
				}
			}
		}
		pc, sp, low, high, prov, leaf := c.Regs.PC, c.Regs.SP(), c.Low, c.High, c.Prov, c.Leaf
		first, worst := len(out.Frames), out.Worst
		c.Outside = false
		c.Depth++
		v, owner := w.step(c)
		for i := first; i < len(out.Frames); i++ {
			f := &out.Frames[i]
			f.Owner = owner
			f.Flags |= stitched
			if f.Prov < prov {
				f.Prov = prov
			}
			if f.Prov > out.Worst {
				out.Worst = f.Prov
			}
			if f.Kind == KindUnknown && c.Prov < Heuristic {
				// Nobody knows this code, so nothing proves what it does to the stack. It may look
				// like a compiler's and still have pushed anything.
				c.Prov = Heuristic
			}
		}
		if v == Done {
			if c.Outside && !w.believes(c, snap, first, prov, &checked) {
				w.drop(c, first, worst, pc, leaf)
				return
			}
			w.complete(c)
			return
		}
		if v == Cut {
			w.end(c, EndTruncated)
			return
		}
		if v == Uncopied {
			w.end(c, EndUncopied)
			return
		}
		if v == NotMine {
			// Nobody knows this code. The thread may really be there, by a call through a wild
			// pointer, which has just stored the return address. A return address in such code is
			// an error of the walk.
			if !leaf {
				w.end(c, w.endOfBadPC(c, snap, pc))
				return
			}
			if len(out.Frames) == first {
				out.Push(Frame{PC: pc, Kind: KindUnknown, Prov: prov, Flags: stitched})
			}
		}
		if v == Stuck || v == NotMine {
			if !w.guess(c, leaf, v == NotMine) {
				w.end(c, w.endOfStuck(c, snap, sp))
				return
			}
		}
		if c.Outside {
			if !w.believes(c, snap, first, prov, &checked) {
				w.drop(c, first, worst, pc, leaf)
				return
			}
			stitched = Stitched
			out.Stitched = true
		}
		if c.Regs.PC == 0 {
			// The first frame of a thread is entered with 0 as the return address, by kernels and
			// thread libraries; only the last few words of the stack lie above it.
			if c.High != 0 && c.High-c.Regs.SP() > 64<<10 {
				w.end(c, EndBadPC)
				out.EndPC = pc
				return
			}
			w.complete(c)
			return
		}
		if c.Low != low || c.High != high {
			continue
		}
		if !w.progressed(c, sp, leaf) {
			w.end(c, EndBadSP)
			out.EndPC = pc
			return
		}
	}
}

// believes reports whether a step that read memory which was not copied is to be believed: it
// proved each frame that it appended (those from index first on) unless the walk was a guess before
// (provenance prov), and the stack at the end of the copy is still what it was.
func (w *Walker) believes(c *Cursor, snap *capture.Snapshot, first int, prov Provenance, checked *bool) bool {
	if prov != Heuristic && (c.Prov == Heuristic || c.Stack.guessedFrom(first)) {
		return false
	}
	if *checked || c.Checked {
		return true
	}
	for _, m := range w.movers[:w.n+1] {
		if m != nil && m.MovesStacks() {
			return false
		}
	}
	*checked = true
	return w.unchanged(c, snap, snap.StackAddr+uint64(len(snap.Stack)))
}

// drop ends a walk as truncated, without the frames of a step that is not believed: what they
// are may have been read where the stack has changed. A leaf's is known by its registers.
func (w *Walker) drop(c *Cursor, first int, worst Provenance, pc uint64, leaf bool) {
	if out := c.Stack; !leaf {
		out.Frames, out.Worst = out.Frames[:first], worst
	}
	w.end(c, EndTruncated)
	c.Stack.EndPC = pc
}

// settled reports whether no stepper carries state from the last frame to the next outside the
// Cursor.
func (w *Walker) settled() bool {
	for i := 1; i <= w.n; i++ {
		if u := w.unsettled[i]; u != nil && !u.Settled() {
			return false
		}
	}
	return true
}

// step tries the steppers in order.
func (w *Walker) step(c *Cursor) (Verdict, uint8) {
	pc := c.Regs.PC
	for i := 1; i <= w.n; i++ {
		s := w.steppers[i]
		if !s.Owns(pc) {
			continue
		}
		if v := s.Step(c); v != NotMine {
			return v, uint8(i)
		}
	}
	return NotMine, 0
}

// progressed reports whether the stack pointer moved towards the stack's top. It may stay only if a
// leaf's return address is in a register, as in adapters and interpreters for a few instructions on
// amd64 too.
func (w *Walker) progressed(c *Cursor, before uint64, leaf bool) bool {
	sp := c.Regs.SP()
	if sp&7 != 0 || sp < before || sp-before > maxFrameSize {
		return false
	}
	// Only a leaf's return address can be in a register.
	if sp == before && !leaf {
		return false
	}
	return c.High == 0 || sp <= c.High
}

// complete ends a walk at the thread's first frame. If a guess led there, the whole stack is a
// guess.
func (w *Walker) complete(c *Cursor) {
	out := c.Stack
	out.End = EndComplete
	out.Worst = max(out.Worst, c.Prov)
}

func (w *Walker) end(c *Cursor, e End) {
	out := c.Stack
	if e == EndComplete {
		w.complete(c)
		return
	}
	out.End = e
	out.EndPC = c.Regs.PC
	if n := len(out.Frames); n > 0 {
		out.EndKind = out.Frames[n-1].Kind
	}
}

// unchanged reports whether the stack around the end of the copy is still what it was when the copy
// was made, as far as that can be told. If so, the part above, which only frames further out use,
// is very likely the same too.
func (w *Walker) unchanged(c *Cursor, snap *capture.Snapshot, cut uint64) bool {
	n := min(len(snap.Stack), checkBytes)
	if n == 0 || c.Mem == nil {
		return c.Mem != nil
	}
	return c.Mem.Bytes(cut-uint64(n), w.check[:n]) && bytes.Equal(w.check[:n], snap.Stack[len(snap.Stack)-n:])
}

// endOfStuck returns the reason why no caller was found.
func (w *Walker) endOfStuck(c *Cursor, snap *capture.Snapshot, sp uint64) End {
	if snap.Flags&capture.StackUnread != 0 || len(snap.Stack) == 0 {
		return EndUnread
	}
	end := snap.StackAddr + uint64(len(snap.Stack))
	switch {
	case c.High != 0 && sp == c.High:
		return EndComplete // no stack is left
	case c.Outside || sp >= end:
		if snap.StackTop == 0 || end < snap.StackTop {
			return EndTruncated
		}
		return EndReadError
	}
	return w.endOfBadPC(c, snap, 0)
}

// endOfBadPC returns the reason why a return address led nowhere; pc is 0 if it led to code.
func (w *Walker) endOfBadPC(c *Cursor, snap *capture.Snapshot, pc uint64) End {
	// The code of a process that has ended cannot be read any more, not even where its thread was
	// stopped.
	if c.Mem != nil && snap.Regs.PC != 0 && w.code != nil && w.code.Executable(snap.Regs.PC) && c.Code(snap.Regs.PC, 1) == nil {
		return EndReadError
	}
	if pc != 0 && w.code != nil && !w.code.Executable(pc) {
		return EndBadPC
	}
	return EndNoRule
}
