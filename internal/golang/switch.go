package golang

import (
	"bytes"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// overSwitch moves to the caller of a function that switches stacks. Until its frame has been given
// up, the frame pointer leads to it, from either stack.
func overSwitch(c *walk.Cursor, r *Rule, code walk.Code, bias uint64) walk.Verdict {
	regs := &c.Regs
	arm, fpBit := regs.Arch == cpu.ARM64, uint32(1<<cpu.RBP)
	// base is where the frame pointer is saved, if the stack has not changed.
	base := regs.SP() + uint64(r.Size) - 8
	if arm {
		fpBit = 1 << cpu.X29
		base = regs.SP() - 8
	}
	fp := regs.FP()
	if r.Size == 0 || regs.Known&fpBit == 0 || fp == base {
		return step(c, r.Size)
	}
	if c.Leaf {
		if !arm {
			// Some change the stack pointer in ways that the table does not follow up
			// to the return.
			if b := c.Code(regs.PC, 1); len(b) == 1 && b[0] == 0xc3 {
				return step(c, 0)
			}
		}
		// Has the frame pointer been saved and not been set yet?
		if v, ok := c.Word(base); ok && v == fp {
			return step(c, r.Size)
		}
	}
	if fp == 0 || fp&7 != 0 {
		return walk.Done // no goroutine was left to get to this stack
	}
	up := uint64(16)
	if arm {
		up = 8 + uint64(r.Size)
	}
	if c.InCopy(fp) && c.InCopy(fp+8) || c.Copied(fp, 16) != nil {
		// Copied with the sample: the same stack, one that lies close to it, or the goroutine's.
		v1, _ := c.Word(fp)
		v2, _ := c.Word(fp + 8)
		if fp < regs.SP() || fp-c.Copy.Base >= uint64(len(c.Copy.Bytes)) {
			newStack(c)
		}
		return arrive(c, v2, fp+up, v1)
	}
	return overLive(c, r, code, bias, fp, up)
}

// overLive moves to a goroutine whose stack was not copied, because the thread was sampled on its
// own stack. The goroutine must be unchanged: what the thread's stack holds nearest to the switch
// of stacks must be the same, and the goroutine must have called this very function. Otherwise the
// walk ends here, with the thread's stack complete.
func overLive(c *walk.Cursor, r *Rule, code walk.Code, bias, fp, up uint64) walk.Verdict {
	if c.Mem == nil {
		return walk.Done
	}
	if !c.Leaf && !unchanged(c) {
		return walk.Done
	}
	caller, ok1 := c.Mem.Word(fp)
	ra, ok2 := c.Mem.Word(fp + 8)
	ra = walk.StripPAC(ra)
	if !ok1 || !ok2 || caller != 0 && caller <= fp || ra == 0 || !code.Executable(ra-1) || !called(c, ra, r.Entry+bias, r.Entry != 0) {
		return walk.Done
	}
	newStack(c)
	c.Outside, c.Checked = true, true
	return arrive(c, ra, fp+up, caller)
}

// arrive moves the Cursor to a caller.
func arrive(c *walk.Cursor, ra, sp, fp uint64) walk.Verdict {
	regs := &c.Regs
	regs.PC = ra
	regs.SetSP(sp)
	regs.SetFP(fp)
	regs.Known = 1<<cpu.RSP | 1<<cpu.RBP
	if regs.Arch == cpu.ARM64 {
		regs.PC = walk.StripPAC(ra)
		regs.Known = 1<<cpu.XSP | 1<<cpu.X29
	}
	c.Leaf, c.Unextended, c.LeafCallee = false, 0, true
	return walk.Stepped
}

// newStack records that the Cursor is switching to a stack whose bounds are not known.
func newStack(c *walk.Cursor) {
	if c.Low|c.High == 0 {
		c.Low = 8 // only the change matters; no stack is there
	} else {
		c.Low, c.High = 0, 0
	}
}

// checkBytes is how many bytes of a thread's stack are compared: at least the frame of the function
// that was called just after the switch of stacks, which has a return address and in most cases the
// frame pointer.
const checkBytes = 256

// unchanged reports whether the copied stack just below the stack pointer is still
// what the process has there.
func unchanged(c *walk.Cursor) bool {
	end := c.Regs.SP() - c.Copy.Base
	if end > uint64(len(c.Copy.Bytes)) {
		return false
	}
	n := min(end, checkBytes)
	want := c.Copy.Bytes[end-n : end]
	var b [64]byte
	for at := c.Regs.SP() - n; len(want) > 0; {
		part := b[:min(len(want), len(b))]
		if !c.Mem.Bytes(at, part) || !bytes.Equal(part, want[:len(part)]) {
			return false
		}
		at, want = at+uint64(len(part)), want[len(part):]
	}
	return true
}

// called reports whether ra is after a call, and the call is of the function at entry if that is
// known and the call's target can be told.
func called(c *walk.Cursor, ra, entry uint64, known bool) bool {
	if !c.AfterCall(ra) {
		return false
	}
	if !known {
		return true
	}
	if c.Regs.Arch == cpu.ARM64 {
		b := c.Code(ra-4, 4)
		if len(b) < 4 {
			return false
		}
		w := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		return w>>26 != 0b100101 || ra-4+uint64(int64(int32(w<<6)>>6)*4) == entry
	}
	b := c.Code(ra-5, 5)
	if len(b) < 5 {
		return false
	}
	return b[0] != 0xe8 || ra+uint64(int64(int32(uint32(b[1])|uint32(b[2])<<8|uint32(b[3])<<16|uint32(b[4])<<24))) == entry
}

// Offsets in the runtime's struct g, which have been the same since Go 1.5: the bounds of its
// stack, the thread's struct m, and sched, where it will resume. In struct m, the g of the thread's
// own stack. The offset in m of the goroutine that the thread runs (curg) has changed: it is 0xb8
// in Go 1.26, and was 0x90 to 0xc8 before.
const (
	gLow, gHigh = 0, 8
	gM          = 48
	gSP, gPC    = 56, 64
	gBP         = 96
	mG0         = 0

	curgFirst, curgLast = 0x80, 0x100
)

// ownStack reports whether g belongs to a thread's own stack, and returns the thread's struct m.
func ownStack(mem walk.Memory, g uint64) (m uint64, own, ok bool) {
	m, ok1 := mem.Word(g + gM)
	g0, ok2 := mem.Word(m + mG0)
	return m, g0 == g, ok1 && ok2 && m != 0
}

// overEnter follows the function that resumes a goroutine. As soon as the stack pointer is the
// goroutine's, it is where the goroutine will resume; only at the last instruction is the address
// in a register.
func overEnter(c *walk.Cursor, r *Rule, code walk.Code) walk.Verdict {
	regs := &c.Regs
	if !c.Leaf || c.Mem == nil {
		return step(c, r.Size)
	}
	g := regs.R[gRegister(regs.Arch)]
	// A goroutine that has been descheduled since has no thread.
	if _, own, ok := ownStack(c.Mem, g); ok && own {
		return step(c, r.Size)
	}
	low, ok1 := c.Mem.Word(g + gLow)
	high, ok2 := c.Mem.Word(g + gHigh)
	if sp := regs.SP(); !ok1 || !ok2 || sp <= low || sp > high || high-low > 1<<30 {
		if returns(c, r, code) {
			return step(c, r.Size)
		}
		return walk.Done
	}
	pc := regs.R[cpu.RBX]
	if regs.Arch == cpu.ARM64 {
		pc = regs.R[cpu.X6]
	}
	if !code.Executable(pc) {
		return walk.Done
	}
	regs.PC = pc
	regs.Known = regs.Known&(1<<gRegister(regs.Arch)) | spBit(regs.Arch)
	// The goroutine will not return to pc, it will start there.
	c.Leaf, c.Unextended, c.LeafCallee = true, 0, false
	newStack(c)
	return walk.Stepped
}

// gRegister returns the register that holds the running g in all code that the compiler generates
// (since Go 1.17 on amd64).
func gRegister(a cpu.Arch) uint8 {
	if a == cpu.ARM64 {
		return cpu.X28
	}
	return cpu.R14
}

func spBit(a cpu.Arch) uint32 {
	if a == cpu.ARM64 {
		return 1 << cpu.XSP
	}
	return 1 << cpu.RSP
}

// overGrowth moves from the thread's stack, where a goroutine's stack is being grown, to the
// function that needs it, if that is still going on.
func overGrowth(c *walk.Cursor, code walk.Code) walk.Verdict {
	regs, mem := &c.Regs, c.Mem
	reg := gRegister(regs.Arch)
	if regs.Known&(1<<reg) != 0 && asked(c, code) {
		return walk.Stepped
	}
	if mem == nil || regs.Known&(1<<reg) == 0 || !unchanged(c) {
		return walk.Done
	}
	m, own, ok := ownStack(mem, regs.R[reg])
	if !ok || !own {
		return walk.Done
	}
	for at := m + curgFirst; at < m+curgLast; at += 8 {
		g, ok := mem.Word(at)
		if !ok {
			break
		}
		if g == regs.R[reg] || g < 1<<12 || g&7 != 0 {
			continue
		}
		if of, own, ok := ownStack(mem, g); ok && !own && of == m && growing(c, g, code) {
			return walk.Stepped
		}
	}
	return walk.Done
}

// asked moves to the function that has asked for more stack if its stack was copied: it continues
// after its call of morestack.
func asked(c *walk.Cursor, code walk.Code) bool {
	pc := c.OtherPC
	// On arm64 its own return address is only in g.
	if len(c.Other.Bytes) < 16 || pc == 0 || c.Regs.Arch != cpu.AMD64 || !code.Executable(pc-1) || !c.AfterCall(pc) {
		return false
	}
	newStack(c)
	arrive(c, pc, c.Other.Base+8, 0)
	c.Regs.Known = spBit(c.Regs.Arch)
	return true
}

// growing moves to the function in which goroutine g asked for more stack; false if there is none.
func growing(c *walk.Cursor, g uint64, code walk.Code) bool {
	mem := c.Mem
	low, ok1 := mem.Word(g + gLow)
	high, ok2 := mem.Word(g + gHigh)
	sp, ok3 := mem.Word(g + gSP)
	pc, ok4 := mem.Word(g + gPC)
	fp, ok5 := mem.Word(g + gBP)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || sp <= low || sp > high || sp&7 != 0 || !code.Executable(pc) || !c.AfterCall(pc) {
		return false
	}
	arrive(c, pc, sp, fp)
	c.Low, c.High = low, high
	c.Outside, c.Checked = true, true
	return true
}
