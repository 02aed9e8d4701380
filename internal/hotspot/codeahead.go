package hotspot

import (
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// maxAheadFrames is how many frames are prefetched at a time.
const maxAheadFrames = 64

// lookAheadInCode checks, with one read, the code of the frame that returns to pc and of its outer
// frames, if it has not been checked in this batch. The outer frames are predicted from what was
// known of the code. A wrong prediction costs only time.
func (vm *VM) lookAheadInCode(c *walk.Cursor, pc uint64) {
	e := vm.remembered(pc)
	if e == nil || e.blob == nil || e.blob.batch == vm.batch {
		return
	}
	sp := c.Regs.SP()
	if c.Unextended != 0 {
		sp = c.Unextended
	}
	stale := vm.code.ahead[:0]
	for range maxAheadFrames {
		if e.blob.batch != vm.batch && !e.blob.dead {
			stale = append(stale, e.blob)
		}
		if e.how != howFrame {
			break
		}
		if sp += e.low + uint64(e.frame); !c.InCopy(sp - 8) {
			break
		}
		ra, _ := c.Word(sp - 8)
		if e = vm.remembered(stripPC(c, ra)); e == nil || e.blob == nil {
			break
		}
	}
	if len(stale) > 1 {
		vm.checkBlobs(stale)
	}
	clear(stale)
	vm.code.ahead = stale[:0]
}

// checkBlobs compares blobs with the process, in one read. Blobs that are unchanged count as
// checked in this batch, the others are dropped.
func (vm *VM) checkBlobs(bs []*blob) {
	c, l := &vm.code, &vm.code.layout
	if len(bs) == 0 {
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
	ended := vm.peek.readV(c.reqs) == 0 && vm.ended()
	for i, b := range bs {
		switch {
		case !ended && !(c.reqs[i].OK && l.same(c.reqs[i].Buf, b)):
			vm.kill(b)
		case b.batch != vm.batch:
			b.batch = vm.batch
			c.recent = append(c.recent, b)
		}
	}
}
