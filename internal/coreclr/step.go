package coreclr

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
)

// step is the way from a frame to its caller, in a form that is fast to follow: the caller's stack
// pointer is a register plus an offset, the return address lies below it, and a few registers lie
// at offsets from it.
type step struct {
	ok   bool
	reg  uint8
	n    uint8
	off  int32
	regs [8]uint8
	at   [8]int32
	keep uint32
	rule *ehframe.Rule // used instead if it is more complicated
}

// compile makes a step of a rule.
func (s *step) compile(r *ehframe.Rule) {
	*s = step{ok: true, reg: r.CFAReg, off: r.CFAOff, keep: r.Keep}
	simple := r.CFAExpr == nil && r.RA.How == ehframe.AtCFA && r.RA.Off == -8 && !r.Signal && len(r.Saves) <= len(s.regs)
	for i := range r.Saves {
		if v := &r.Saves[i]; simple && v.How == ehframe.AtCFA && v.Reg < cpu.NumRegs && v.Reg != cpu.RSP {
			s.regs[i], s.at[i], s.n = v.Reg, v.Off, uint8(i+1)
		} else {
			simple = false
		}
	}
	if !simple {
		s.rule = r
	}
}

// follow moves the Cursor to the caller.
func (s *step) follow(c *walk.Cursor) walk.Verdict {
	if s.rule != nil {
		if !native.Follow(c, s.rule) {
			return walk.Stuck
		}
		return walk.Stepped
	}
	regs := &c.Regs
	if regs.Known&(1<<s.reg) == 0 {
		return walk.Stuck
	}
	cfa := regs.R[s.reg] + uint64(int64(s.off))
	ra, ok := c.Word(cfa - 8)
	if !ok {
		return walk.Stuck
	}
	known := regs.Known & s.keep
	for i := range s.n {
		v, ok := c.Word(cfa + uint64(int64(s.at[i])))
		if !ok {
			known &^= 1 << s.regs[i]
			continue
		}
		regs.R[s.regs[i]] = v
		known |= 1 << s.regs[i]
	}
	regs.PC, regs.R[cpu.RSP], regs.Known = ra, cfa, known|1<<cpu.RSP
	c.Leaf, c.Unextended, c.LeafCallee = false, 0, true
	return walk.Stepped
}

// Owns implements walk.Stepper.
func (vm *VM) Owns(pc uint64) bool {
	// A call may be the last instruction of a method.
	e := &vm.code.pcs[(pc-1)*0x9e3779b97f4a7c15>>(64-pcCacheBits)]
	if e.pc == pc-1 && e.code != nil {
		return true
	}
	if vm.sectionOf(pc) != nil || vm.sectionOf(pc-1) != nil || vm.inChain(pc) || vm.inRestore(pc) {
		return true
	}
	is, _ := vm.loose(pc)
	return is
}

// Step implements walk.Stepper.
func (vm *VM) Step(c *walk.Cursor) walk.Verdict {
	pc := c.Regs.PC
	if vm.inChain(pc) {
		if !c.Leaf {
			return walk.NotMine
		}
		return vm.stepChain(c)
	}
	if vm.inRestore(pc) {
		if !c.Leaf {
			return walk.NotMine
		}
		return vm.stepRestore(c)
	}
	at, flags := pc, walk.FrameFlags(0)
	if !c.Leaf {
		at, flags = pc-1, walk.ReturnAddress
	}
	e := vm.at(at)
	if e == nil || e.code.stub != 0 {
		return vm.stepStub(c, at, flags)
	}
	k := e.code
	off := pc - k.start
	f := c.Stack.Next()
	*f = walk.Frame{PC: pc, Ref: uint64(k.id)<<32 | off&0xffffffff, Kind: vm.kindOf(k), Prov: c.Prov, Flags: flags}
	if e.part < 0 {
		return walk.Stuck
	}
	if !c.Leaf {
		if e.step == nil {
			return walk.Stuck
		}
		return e.step.follow(c)
	}
	r := vm.leaf(k, &k.parts[e.part], pc)
	if r == nil || !native.Follow(c, r) {
		return walk.Stuck
	}
	return walk.Stepped
}
