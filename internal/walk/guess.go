package walk

import "github.com/candid-profiler/candid/internal/cpu"

// guess moves the Cursor to the probable caller if nothing better is known. nowhere means that
// nobody knows the frame's code, so that nothing can have been pushed since it was called.
func (w *Walker) guess(c *Cursor, leaf, nowhere bool) bool {
	if w.code == nil {
		return false
	}
	sp := c.Regs.SP()
	if leaf {
		if w.arch == cpu.ARM64 {
			if lr := StripPAC(c.Regs.R[cpu.X30]); c.Regs.Known&(1<<cpu.X30) != 0 && w.plausible(c, lr) {
				return w.found(c, lr, sp)
			}
		} else if ra, ok := c.Word(sp); ok && nowhere && w.plausible(c, ra) {
			return w.found(c, ra, sp+8)
		}
	}
	if w.framePointer(c, sp) {
		return true
	}
	return w.search(c, sp)
}

// framePointer follows the frame pointer if it points at a saved frame pointer
// below a return address, and the saved one continues upwards.
func (w *Walker) framePointer(c *Cursor, sp uint64) bool {
	bit := uint32(1 << cpu.RBP)
	if w.arch == cpu.ARM64 {
		bit = 1 << cpu.X29
	}
	fp := c.Regs.FP()
	if c.Regs.Known&bit == 0 || fp < sp || fp&7 != 0 || fp-sp > maxFrameSize || c.High != 0 && fp+16 > c.High {
		return false
	}
	next, ok1 := c.Word(fp)
	ra, ok2 := c.Word(fp + 8)
	ra = w.strip(ra)
	if !ok1 || !ok2 || next != 0 && (next <= fp || next-fp > maxFrameSize) || !w.plausible(c, ra) {
		return false
	}
	w.found(c, ra, fp+16)
	c.Regs.SetFP(next)
	c.Regs.Known |= bit
	return true
}

// search takes the nearest word of the stack that could be a return address.
func (w *Walker) search(c *Cursor, sp uint64) bool {
	fp := c.Regs.FP()
	bit := uint32(1 << cpu.RBP)
	if w.arch == cpu.ARM64 {
		bit = 1 << cpu.X29
	}
	known := c.Regs.Known&bit != 0
	for i := uint64(0); i < searchWords; i++ {
		at := sp + 8*i
		if !c.InCopy(at) || c.High != 0 && at >= c.High {
			return false // a guess is not worth a read of the process
		}
		v, _ := c.Word(at)
		v = w.strip(v)
		if !w.plausible(c, v) {
			continue
		}
		w.found(c, v, at+8)
		// The frame pointer is still good if the skipped frames left it alone.
		if known && fp > at && fp-at < maxFrameSize && fp&7 == 0 && (c.High == 0 || fp < c.High) {
			c.Regs.Known |= bit
		}
		return true
	}
	return false
}

func (w *Walker) strip(ra uint64) uint64 {
	if w.arch == cpu.ARM64 {
		return StripPAC(ra)
	}
	return ra
}

// StripPAC removes the signature from an AArch64 return address: user addresses have at most 52
// bits, and Linux hands out 48 unless asked for more.
func StripPAC(ra uint64) uint64 { return ra & (1<<48 - 1) }

// plausible reports whether ra is in executable memory, after a call.
func (w *Walker) plausible(c *Cursor, ra uint64) bool {
	return ra >= 0x1000 && w.code.Executable(ra-1) && c.AfterCall(ra)
}

// found moves the Cursor to a guessed caller, of which only the stack pointer is known.
func (w *Walker) found(c *Cursor, ra, sp uint64) bool {
	c.Regs.PC = ra
	c.Regs.SetSP(sp)
	if w.arch == cpu.ARM64 {
		c.Regs.Known = 1 << cpu.XSP
	} else {
		c.Regs.Known = 1 << cpu.RSP
	}
	c.Leaf, c.Unextended, c.LeafCallee = false, 0, true
	c.Prov = Heuristic
	return true
}
