package native

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/walk"
)

// follow moves the Cursor to the caller according to a rule.
func follow(c *walk.Cursor, r *ehframe.Rule) walk.Verdict {
	if !r.Simple || c.Regs.Known&(1<<r.CFAReg) == 0 {
		return followAny(c, r)
	}
	regs := &c.Regs
	cfa := regs.R[r.CFAReg] + uint64(int64(r.CFAOff))
	ra, ok := c.Word(cfa - 8)
	if !ok {
		return walk.Stuck
	}
	known := regs.Known & r.Keep
	if r.FPOff != 0 {
		fp, ok := c.Word(cfa + uint64(int64(r.FPOff)))
		regs.R[cpu.RBP] = fp
		known |= 1 << cpu.RBP
		if !ok {
			known &^= 1 << cpu.RBP
		}
	}
	regs.PC = ra
	regs.R[cpu.RSP] = cfa
	regs.Known = known | 1<<cpu.RSP
	c.Leaf, c.Unextended, c.LeafCallee = false, 0, true
	return walk.Stepped
}

// followAny is follow for every kind of rule.
func followAny(c *walk.Cursor, r *ehframe.Rule) walk.Verdict {
	regs := &c.Regs
	if r.RA.How == ehframe.Undefined {
		return walk.Done
	}
	var cfa uint64
	if r.CFAExpr != nil {
		v, ok := ehframe.Eval(r.CFAExpr, regs, c, 0, false)
		if !ok {
			return walk.Stuck
		}
		cfa = v
	} else {
		if int(r.CFAReg) >= cpu.NumRegs || regs.Known&(1<<r.CFAReg) == 0 {
			return walk.Stuck
		}
		cfa = regs.R[r.CFAReg] + uint64(int64(r.CFAOff))
	}
	ra, ok := uint64(0), false
	if r.RA.How == ehframe.Same {
		// In the link register, which only a leaf can still have there.
		ra, ok = regs.R[cpu.X30], regs.Arch == cpu.ARM64 && regs.Known&(1<<cpu.X30) != 0
	} else {
		ra, ok = value(c, regs, &r.RA, cfa)
	}
	if !ok {
		return walk.Stuck
	}
	known := regs.Known & r.Keep
	before, sp := regs.SP(), cfa
	// Rules refer to this frame's registers, so none may be changed before all have been computed.
	var values [cpu.NumRegs]uint64
	var restored uint32
	for i := range r.Saves {
		s := &r.Saves[i]
		bit := uint32(1) << s.Reg
		v, ok := value(c, regs, s, cfa)
		if !ok {
			known &^= bit
			continue
		}
		values[s.Reg] = v
		restored |= bit
	}
	for i := range r.Saves {
		if reg := r.Saves[i].Reg; restored&(1<<reg) != 0 {
			regs.R[reg] = values[reg]
		}
	}
	known |= restored
	spReg := cpu.RSP
	if regs.Arch == cpu.ARM64 {
		spReg = cpu.XSP
		ra = walk.StripPAC(ra)
	}
	if restored&(1<<spReg) != 0 {
		sp = values[spReg]
	}
	regs.PC = ra
	regs.SetSP(sp)
	regs.Known = known | 1<<spReg
	c.Leaf, c.Unextended, c.LeafCallee = r.Signal, 0, !r.Signal
	if r.Signal {
		leaveSignalStack(c, before)
	}
	return walk.Stepped
}

// value finds the caller's value of one register.
func value(c *walk.Cursor, regs *cpu.Registers, s *ehframe.Save, cfa uint64) (uint64, bool) {
	switch s.How {
	case ehframe.AtCFA:
		return c.Word(cfa + uint64(int64(s.Off)))
	case ehframe.IsCFA:
		return cfa + uint64(int64(s.Off)), true
	case ehframe.InReg:
		if s.Off < 0 || s.Off >= cpu.NumRegs || regs.Known&(1<<s.Off) == 0 {
			return 0, false
		}
		return regs.R[s.Off], true
	case ehframe.AtExpr:
		at, ok := ehframe.Eval(s.Expr, regs, c, cfa, true)
		if !ok {
			return 0, false
		}
		return c.Word(at)
	case ehframe.IsExpr:
		return ehframe.Eval(s.Expr, regs, c, cfa, true)
	}
	return 0, false
}

// derived is follow for a rule that was found by reading code. Its result is accepted only if the
// caller's PC is after a call, and then with the provenance proof.
func (s *Stepper) derived(c *walk.Cursor, r *ehframe.Rule, proof walk.Provenance) walk.Verdict {
	ra, _, ok := Caller(c, r)
	if !ok || !s.Owns(ra-1) {
		return walk.Stuck
	}
	// A signal's handler was not called; it returns to a trampoline. A runtime's interpreter stores
	// its return address itself, and jumps.
	if !c.AfterCall(ra) && !trampoline(c, ra) && !c.Generated(ra) {
		return walk.Stuck
	}
	v := followAny(c, r)
	if v == walk.Stepped && c.Prov < proof {
		c.Prov = proof
	}
	return v
}
