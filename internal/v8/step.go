package v8

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// maxFrame is the size in bytes above which a frame is rejected.
const maxFrame = 1 << 20

// Step implements walk.Stepper.
func (vm *VM) Step(c *walk.Cursor) walk.Verdict {
	pc := c.Regs.PC
	at, flags := pc, walk.FrameFlags(0)
	if !c.Leaf {
		at, flags = pc-1, walk.ReturnAddress
	}
	p, ok := vm.find(at)
	if !ok {
		return walk.NotMine
	}
	first := len(c.Stack.Frames)
	f := walk.Frame{PC: pc, Ref: p.ref, Kind: walk.KindNative, Prov: c.Prov, Flags: flags}
	if !p.builtin {
		f.Ref, f.Kind = 0, walk.KindCompiled
	}
	c.Stack.Push(f)
	if c.Leaf {
		l := vm.leaf(c.Mem, pc, p)
		switch l.how {
		case unclear:
			return walk.Stuck
		case returns, saved:
			if l.entering && !p.builtin {
				vm.entered(c, &c.Stack.Frames[first])
			}
			return vm.leave(c, l)
		}
	} else if vm.frameless(c.Mem, p) {
		return walk.Stuck
	}
	if (!p.builtin || p.role == entry) && c.Regs.Known&(1<<cpu.RBP) != 0 {
		vm.describe(c, &c.Stack.Frames[first], p)
	}
	return vm.framePointer(c, p)
}

// framePointer moves the Cursor to the caller of a frame that rbp points at.
func (vm *VM) framePointer(c *walk.Cursor, p place) walk.Verdict {
	fp, sp := c.Regs.FP(), c.Regs.SP()
	if c.Regs.Known&(1<<cpu.RBP) == 0 || fp < sp || fp&7 != 0 || fp-sp > maxFrame || c.High != 0 && fp+16 > c.High {
		return walk.Stuck
	}
	next, ok1 := c.Word(fp)
	ra, ok2 := c.Word(fp + 8)
	if !ok1 || !ok2 {
		return walk.Stuck
	}
	if p.role == handler {
		// A handler is only called by code that runs its function's bytecode.
		if by, ok := vm.find(ra - 1); !ok || by.role != entry {
			return walk.Stuck
		}
	}
	return vm.to(c, ra, fp+16, next)
}

// leave moves the Cursor to the caller of code that has no frame, not yet or not any more.
func (vm *VM) leave(c *walk.Cursor, l leaf) walk.Verdict {
	at, fp := c.Regs.SP()+uint64(int64(l.depth)), c.Regs.FP()
	if c.Regs.Known&(1<<cpu.RBP) == 0 || at < c.Regs.SP() {
		return walk.Stuck
	}
	if l.how == saved {
		v, ok := c.Word(at)
		if !ok {
			return walk.Stuck
		}
		fp, at = v, at+8
	}
	ra, ok := c.Word(at)
	if !ok {
		return walk.Stuck
	}
	return vm.to(c, ra, at+8, fp)
}

// to moves the Cursor to a caller, if it is V8's code or native code, after a call.
func (vm *VM) to(c *walk.Cursor, ra, sp, fp uint64) walk.Verdict {
	if ra < 4096 || !vm.native.Executable(ra-1) || !c.AfterCall(ra) {
		return walk.Stuck
	}
	if _, ok := vm.find(ra - 1); !ok {
		if f, ok := vm.native.Frame(ra, walk.ReturnAddress); !ok || f.Kind != walk.KindNative {
			return walk.Stuck
		}
	}
	c.Regs.PC = ra
	c.Regs.SetSP(sp)
	c.Regs.SetFP(fp)
	c.Regs.Known = 1<<cpu.RSP | 1<<cpu.RBP
	c.Leaf, c.Unextended, c.LeafCallee = false, 0, true
	c.Prov = max(c.Prov, walk.Derived)
	return walk.Stepped
}
