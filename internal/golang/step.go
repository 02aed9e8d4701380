package golang

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// Step moves the Cursor, which is at a frame with this rule, to the caller. The frame has been
// appended already. code is the process's; bias is the difference between its addresses and the
// file's. Step does not handle rules with the role Trampoline.
//
// On amd64, sizes do not include the return address, and the frame pointer is saved just below it
// in each function that has a frame. On arm64 they include the link register, which is saved at the
// frame's lowest word, with the frame pointer just below that, outside of the frame. The register
// of the running g is assumed to be the same in all frames of a stack; users of it check it.
func (r *Rule) Step(c *walk.Cursor, code walk.Code, bias uint64) walk.Verdict {
	switch r.Role {
	case Plain:
	case First:
		return walk.Done
	case Start:
		// Above a new thread's first function there is nothing.
		if !c.Leaf || !returns(c, r, code) {
			return walk.Done
		}
	case Leave:
		if !c.Leaf && r.Size == 0 {
			return overGrowth(c, code)
		}
		if !c.Leaf || r.Size == 0 && (left(c) || !returns(c, r, code)) {
			return walk.Done
		}
		if c.Regs.Arch == cpu.ARM64 && c.Regs.Known&(1<<cpu.X3) != 0 && r.Size == 0 {
			return lookInto(c, r)
		}
		return overSwitch(c, r, code, bias)
	case Switch:
		return overSwitch(c, r, code, bias)
	case Enter:
		return overEnter(c, r, code)
	case Away:
		// No goroutine can be resumed from there.
		c.Regs.Known &^= 1 << gRegister(c.Regs.Arch)
	case Injected:
		return overInjected(c, r)
	case Host:
		return overHost(c, r)
	case Popped:
		return overPopped(c, code)
	}
	return step(c, r.Size)
}

// step moves to the caller of an ordinary frame.
func step(c *walk.Cursor, size int32) walk.Verdict {
	regs := &c.Regs
	if regs.Arch == cpu.ARM64 {
		return stepLink(c, size)
	}
	cfa := regs.R[cpu.RSP] + uint64(size) + 8
	ra, ok := c.Word(cfa - 8)
	if !ok {
		return walk.Stuck
	}
	known := regs.Known & (1<<cpu.RBP | 1<<cpu.R14)
	if size > 0 {
		known &^= 1 << cpu.RBP
		if fp, ok := c.Word(cfa - 16); ok {
			regs.R[cpu.RBP] = fp
			known |= 1 << cpu.RBP
		}
	}
	regs.PC = ra
	regs.R[cpu.RSP] = cfa
	regs.Known = known | 1<<cpu.RSP
	c.Leaf, c.Unextended, c.LeafCallee = false, 0, true
	return walk.Stepped
}

// stepLink is step for architectures whose calls leave the return address in a register.
func stepLink(c *walk.Cursor, size int32) walk.Verdict {
	regs := &c.Regs
	sp := regs.R[cpu.XSP]
	var ra uint64
	known := regs.Known & (1<<cpu.X29 | 1<<cpu.X28)
	if size == 0 {
		if regs.Known&(1<<cpu.X30) == 0 {
			return walk.Stuck
		}
		ra = regs.R[cpu.X30]
	} else {
		v, ok := c.Word(sp)
		if !ok {
			return walk.Stuck
		}
		ra, known = v, known&^(1<<cpu.X29)
		if fp, ok := c.Word(sp - 8); ok {
			regs.R[cpu.X29] = fp
			known |= 1 << cpu.X29
		}
	}
	regs.PC = walk.StripPAC(ra)
	regs.R[cpu.XSP] = sp + uint64(size)
	regs.Known = known | 1<<cpu.XSP
	c.Leaf, c.Unextended, c.LeafCallee = false, 0, true
	return walk.Stepped
}

// lookInto moves from morestack to the function that needs more stack, on arm64. That function has
// not built its frame, and has put its own return address into x3.
func lookInto(c *walk.Cursor, r *Rule) walk.Verdict {
	lr := c.Regs.R[cpu.X3]
	v := stepLink(c, r.Size)
	if v == walk.Stepped {
		c.Regs.R[cpu.X30] = lr
		c.Regs.Known |= 1 << cpu.X30
		c.Leaf = true
	}
	return v
}

// left reports whether morestack has switched to the thread's stack: it then has looked up that
// stack's g and stack pointer.
func left(c *walk.Cursor) bool {
	regs := &c.Regs
	if c.Mem == nil || regs.Arch != cpu.AMD64 {
		return false
	}
	g0 := regs.R[cpu.RBX]
	if _, own, ok := ownStack(c.Mem, g0); !ok || !own {
		return false
	}
	sp, ok := c.Mem.Word(g0 + gSP)
	return ok && sp == regs.R[cpu.RSP]
}

// returns reports whether a return address is where the rule says.
func returns(c *walk.Cursor, r *Rule, code walk.Code) bool {
	var ra uint64
	if c.Regs.Arch == cpu.ARM64 && r.Size == 0 {
		if c.Regs.Known&(1<<cpu.X30) == 0 {
			return false
		}
		ra = c.Regs.R[cpu.X30]
	} else {
		at := c.Regs.SP() + uint64(r.Size)
		if c.Regs.Arch == cpu.ARM64 {
			at = c.Regs.SP()
		}
		v, ok := c.Word(at)
		if !ok {
			return false
		}
		ra = v
	}
	return ra != 0 && code.Executable(ra-1) && c.AfterCall(ra)
}

// overInjected moves to the instruction that a signal interrupted.
func overInjected(c *walk.Cursor, r *Rule) walk.Verdict {
	v := step(c, r.Size)
	if v != walk.Stepped {
		return v
	}
	if regs := &c.Regs; regs.Arch == cpu.ARM64 {
		// The signal's handler has pushed the link register, as 16 bytes.
		if lr, ok := c.Word(regs.R[cpu.XSP]); ok {
			regs.R[cpu.X30] = lr
			regs.Known |= 1 << cpu.X30
		}
		regs.R[cpu.XSP] += 16
	}
	c.Leaf = true
	return v
}

// popped are the registers that may hold such a return address: r12 since Go 1.18, r9 before.
var popped = [...]uint8{cpu.R12, cpu.R9}

// overPopped moves to the caller of a function whose return address is in a register.
func overPopped(c *walk.Cursor, code walk.Code) walk.Verdict {
	regs := &c.Regs
	for _, reg := range popped {
		ra := regs.R[reg]
		if !c.Leaf || regs.Known&(1<<reg) == 0 || !code.Executable(ra-1) || !c.AfterCall(ra) {
			continue
		}
		regs.PC = ra
		regs.Known &= 1<<cpu.RSP | 1<<cpu.RBP | 1<<cpu.R14
		c.Leaf, c.Unextended, c.LeafCallee = false, 0, true
		return walk.Stepped
	}
	return walk.Stuck
}

// hostSaves are where crosscall2 and the like save the registers that C expects to be preserved:
// all of them together, below the flags (runtime/cgo/abi_amd64.h, since Go 1.17). Offsets are from
// the caller's stack pointer.
var hostSaves = [...]struct {
	reg uint8
	off uint64
}{{cpu.RBP, 224}, {cpu.RBX, 216}, {cpu.R12, 208}, {cpu.R13, 200}, {cpu.R14, 192}, {cpu.R15, 184}}

// hostSize is the size of the saved registers and the flags, in bytes.
const hostSize = 232

// overHost moves to the C code that has called Go.
func overHost(c *walk.Cursor, r *Rule) walk.Verdict {
	v := step(c, r.Size)
	if v != walk.Stepped || c.Regs.Arch != cpu.AMD64 || r.Size < hostSize {
		return v
	}
	regs := &c.Regs
	for _, s := range hostSaves {
		regs.Known &^= 1 << s.reg
		if v, ok := c.Word(regs.R[cpu.RSP] - s.off); ok {
			regs.R[s.reg] = v
			regs.Known |= 1 << s.reg
		}
	}
	return v
}
