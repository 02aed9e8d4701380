package hotspot

import (
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// maxAheadFrames is how many frames are prefetched at a time.
const maxAheadFrames = 64

// lookAheadInCode checks, with one read, the code of the frame at pc and of its outer frames, if it
// has not been checked in this batch. The outer frames are predicted from what was known of the
// code. A wrong prediction costs only time.
func (vm *VM) lookAheadInCode(c *walk.Cursor, pc uint64) {
	b := vm.known(pc)
	if b == nil || b.batch == vm.Batch {
		return
	}
	sp := c.Regs.SP()
	if c.Unextended != 0 {
		sp = c.Unextended
	}
	stale, call := vm.code.ahead[:0], vm.Mem.Reads+1
	for i := range maxAheadFrames {
		if b.batch != vm.Batch && b.ahead != call { // recursion comes to the same code again
			b.ahead = call
			stale = append(stale, b)
		}
		frame := b.frameSize
		if e := vm.remembered(pc); e != nil && e.blob == b && !(i == 0 && c.Leaf) {
			if e.how != howFrame {
				break
			}
			frame = e.low + uint64(e.frame)
		} else if frame < 16 || frame > maxFrame || i == 0 && c.Leaf && pc < b.frameComplete {
			break
		}
		if sp += frame; !c.InCopy(sp - 8) {
			break
		}
		ra, _ := c.Word(sp - 8)
		if pc = stripPC(c, ra); pc == 0 {
			break
		}
		if b = vm.known(pc); b == nil {
			break
		}
	}
	if len(stale) > 1 {
		vm.checkBlobs(stale, nil)
	}
	clear(stale)
	vm.code.ahead = stale[:0]
}

// known returns the blob in whose code pc was, when that was last looked up; nil if none was. It may
// not have been checked in this batch.
func (vm *VM) known(pc uint64) *blob {
	h := vm.heapOf(pc)
	if h == nil {
		return nil
	}
	seg := (pc - h.low) >> h.shift
	page := h.pages[seg>>9]
	if page == nil {
		return nil
	}
	id := page[seg&511]
	if id == 0 || id == noBlob {
		return nil
	}
	if b := vm.code.blobs[id]; b != nil && !b.dead && b.contains(pc) {
		return b
	}
	return nil
}

// checkBlobs compares blobs with the process, in one read. Blobs that are unchanged count as
// checked in this batch, the others are dropped. It reads what more says too, after the blobs.
func (vm *VM) checkBlobs(bs []*blob, more []target.Read) {
	c, l := &vm.code, &vm.code.layout
	if len(bs)+len(more) == 0 {
		return
	}
	if need := len(bs) * l.cookieLen; cap(c.bufs) < need {
		c.bufs = make([]byte, need+need/2)
	}
	c.reqs = c.reqs[:0]
	for i, b := range bs {
		n := min(uint64(l.cookieLen), b.cookieLen)
		c.reqs = append(c.reqs, target.Read{Addr: b.start - l.blockHeader, Buf: c.bufs[:cap(c.bufs)][i*l.cookieLen:][:n]})
	}
	c.reqs = append(c.reqs, more...)
	some := vm.Mem.ReadV(c.reqs) > 0
	copy(more, c.reqs[len(bs):])
	read := vm.Mem.Reads
	ended := !some && vm.ended()
	for i, b := range bs {
		switch {
		case !ended && !(c.reqs[i].OK && l.same(c.reqs[i].Buf, b)):
			vm.kill(b)
		case b.batch != vm.Batch:
			b.batch = vm.Batch
			c.recent = append(c.recent, b)
		}
		if !ended && !b.dead {
			b.seen = read
		}
	}
}
