package walk

import (
	"bytes"
	"math/bits"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
)

// Bounds of a WalkCache.
const (
	trailBits  = 6       // 64 threads at a time
	trailBytes = 8 << 20 // of stack, in all trails
	trailMarks = 1 << 15
)

// WalkCache keeps each thread's last walk, so that the outer part of a stack, which is mostly the
// same from sample to sample, is not walked again.
//
// If all of a walk from one frame outwards is exact, its result follows from the registers in that
// frame, from the stack above it and from what is known of the process. If the registers and the
// stack are byte by byte what they were in the thread's last walk, and nothing that is known of the
// process has been refreshed in between (Walker.Renew), the rest of that walk is also the rest of
// this one.
//
// One WalkCache may serve several Walkers that are used from one goroutine. It holds copies of
// stacks, at most 8 MB: they are the target's data, and stay in memory.
type WalkCache struct {
	slots [1 << trailBits]trail
	held  int // bytes in all slots
}

// trail is the last walk of one thread.
type trail struct {
	walker uint64 // 0: the slot is free
	epoch  uint64
	tid    uint32
	count  uint32 // walks in this epoch
	often  bool   // more than one in this epoch, or in the last epoch in which there was one

	top    uint64 // address of the copy's end
	base   uint64 // address of the copy's start; the copy is at the end of kept
	kept   []byte
	room   []Frame // its end holds the frames of that walk, in the order of a Stack
	frames int     // number of frames at the end of room
	marks  []mark  // outermost first: with ever lower stack pointers
}

// mark is a place in a walk from which the rest depends only on the registers and the stack above.
type mark struct {
	sp, pc uint64
	regs   uint64 // digest of the known ones
	known  uint32
	frames uint32 // from here to the thread's first frame; while walking, those inside
}

// NewWalkCache returns an empty WalkCache.
func NewWalkCache() *WalkCache { return &WalkCache{} }

// Renew says that what is known of the process may have changed since the last walk, so that
// earlier walks must not be reused.
func (w *Walker) Renew() { w.epoch++ }

// of returns the trail to use for a snapshot, nil for none.
func (t *WalkCache) of(w *Walker, snap *capture.Snapshot) *trail {
	r := &t.slots[snap.TID*0x9E3779B1>>(32-trailBits)]
	if r.walker != w.id || r.tid != snap.TID {
		t.drop(r)
		*r = trail{walker: w.id, tid: snap.TID, epoch: w.epoch, kept: r.kept, room: r.room, marks: r.marks[:0]}
	}
	if r.epoch != w.epoch {
		r.epoch, r.often, r.count = w.epoch, r.count > 1, 0
		r.forget()
	}
	// A thread that is seen once between two changes is not worth the copy.
	if r.count++; r.count > 1 {
		r.often = true
	}
	whole := snap.Flags&^capture.InKernel == 0 && len(snap.Stack) > 0 && len(snap.Other) == 0 &&
		snap.StackTop == snap.StackAddr+uint64(len(snap.Stack))
	if !r.often || !whole {
		r.forget()
		return nil
	}
	return r
}

// drop frees a slot's memory if it is large.
func (t *WalkCache) drop(r *trail) {
	if len(r.kept) > 64<<10 {
		t.held -= len(r.kept)
		r.kept, r.room, r.marks = nil, nil, nil
	}
}

// forget drops the last walk.
func (r *trail) forget() { r.frames, r.marks, r.top, r.base = 0, r.marks[:0], 0, 0 }

// compareBlock is how many bytes of two stacks are compared at a time.
const compareBlock = 1024

// same returns the lowest address from which on the snapshot's stack is what it was at the last
// walk; the top if no part of it is.
//
// It goes over the whole stack upwards, not from the top down to the first difference. Another CPU
// has just written these bytes, so fetching them dominates the time, and only reading upwards lets
// the processor prefetch. That halves the time.
func (r *trail) same(snap *capture.Snapshot) uint64 {
	if r.top != snap.StackTop || r.top == r.base {
		return snap.StackTop
	}
	old := r.kept[uint64(len(r.kept))-(r.top-r.base):]
	n := min(len(old), len(snap.Stack))
	a, b := old[len(old)-n:], snap.Stack[len(snap.Stack)-n:]
	from, differ := 0, 0 // the last block that differs
	for i := 0; i < n; i += compareBlock {
		if end := min(i+compareBlock, n); !bytes.Equal(a[i:end], b[i:end]) {
			from, differ = i, end
		}
	}
	for ; differ-8 >= from && [8]byte(a[differ-8:differ]) == [8]byte(b[differ-8:differ]); differ -= 8 {
	}
	return snap.StackTop - uint64(n-differ)
}

// keep stores a whole walk of the snapshot, whose stack is unchanged from same on. r already holds
// the outermost frames and marks that the last walk shared with this one. marks holds the others,
// innermost first, each with the number of frames inside of it.
func (t *WalkCache) keep(r *trail, snap *capture.Snapshot, same uint64, out *Stack, marks []mark) {
	need := len(snap.Stack)
	if need > len(r.kept) {
		size := max(need+need/2, 4096)
		if t.held+size-len(r.kept) > trailBytes {
			r.forget()
			return
		}
		t.held += size - len(r.kept)
		grown := make([]byte, size)
		copy(grown[size-len(r.kept):], r.kept)
		r.kept = grown
	}
	r.base, r.top = snap.StackAddr, snap.StackTop
	old := r.kept[len(r.kept)-need:]
	copy(old, snap.Stack[:same-snap.StackAddr])
	n := len(out.Frames)
	// Nothing further in than a frame that is less than exact is kept: it may depend on more than
	// the stack.
	i := n - 1 - out.Same
	for ; i >= 0; i-- {
		f := &out.Frames[i]
		if f.Prov != Exact || f.Kind == KindUnknown || f.Flags&(Virtual|Stitched) != 0 || f.Kind == KindKernel {
			break
		}
	}
	r.put(out.Frames[i+1 : n-out.Same])
	for j := len(marks) - 1; j >= 0 && int(marks[j].frames) > i; j-- {
		m := marks[j]
		m.frames = uint32(n) - m.frames
		r.marks = append(r.marks, m)
	}
}

// put adds frames further in than those that r holds.
func (r *trail) put(inner []Frame) {
	if need := len(inner) + r.frames; need > len(r.room) {
		room := make([]Frame, need+need/2)
		copy(room[len(room)-r.frames:], r.room[len(r.room)-r.frames:])
		r.room = room
	}
	r.frames += len(inner)
	copy(r.room[len(r.room)-r.frames:], inner)
}

// marked reports whether the rest of a walk from the Cursor depends only on its registers and the
// stack above, and returns the mark for this place.
func (c *Cursor) marked(top uint64) (m mark, ok bool) {
	if c.Leaf || c.LeafCallee || c.Unextended != 0 || c.Prov != Exact || c.Outside || c.Checked || c.Low != 0 || c.High != top {
		return m, false
	}
	m.sp, m.pc, m.known = c.Regs.SP(), c.Regs.PC, c.Regs.Known
	sp := uint32(1) << cpu.RSP
	if c.Regs.Arch == cpu.ARM64 {
		sp = 1 << cpu.XSP
	}
	for rest := m.known &^ sp; rest != 0; rest &= rest - 1 {
		m.regs = (bits.RotateLeft64(m.regs, 29) ^ c.Regs.R[bits.TrailingZeros32(rest)]) * 0x9E3779B97F4A7C15
	}
	return m, true
}

// redZone is what code may use below its stack pointer (System V AMD64 psABI 3.2.2).
const redZone = 128

// meet returns the index of the mark that the Cursor has come to; -1 if there is none that may be
// taken over, given that the stack is unchanged from same on.
func (r *trail) meet(m *mark, same uint64) int {
	if m.sp < same+redZone {
		return -1
	}
	i := len(r.marks)
	for i > 0 && r.marks[i-1].sp < m.sp {
		i--
	}
	r.marks = r.marks[:i]
	if i > 0 {
		if k := &r.marks[i-1]; k.sp == m.sp && k.pc == m.pc && k.known == m.known && k.regs == m.regs {
			return i - 1
		}
	}
	return -1
}

// takeOver appends the rest of the last walk from a mark on, all of which is exact.
func (r *trail) takeOver(i int, out *Stack) {
	r.frames = int(r.marks[i].frames)
	r.marks = r.marks[:i+1]
	out.Frames = append(out.Frames, r.room[len(r.room)-r.frames:]...)
	out.Same = r.frames
	out.End = EndComplete
}
