// Package ehframe reads the unwind tables that compilers put in ELF files: .eh_frame with its index
// .eh_frame_hdr, and .debug_frame. It answers one question: how does one get from a frame that
// stopped at an address to its caller's registers? Sources: DWARF 5, section 6.4; Linux Standard
// Base Core, "Exception Frames"; System V AMD64 psABI; AADWARF64.
//
// All addresses are those of the file (ELF virtual addresses), not of a process.
package ehframe

import "github.com/candid-profiler/candid/internal/cpu"

// How is where the caller's value of a register is.
type How uint8

// The values of How. CFA is the canonical frame address: the stack pointer in the caller.
const (
	Same      How = iota // still in the register
	Undefined            // it is lost; for the return address: there is no caller
	AtCFA                // in memory at CFA + Off
	IsCFA                // it is CFA + Off itself
	InReg                // in register Off
	AtExpr               // in memory at the address that Expr computes
	IsExpr               // it is what Expr computes
)

// Save is where one register of the caller is.
type Save struct {
	Reg  uint8
	How  How
	Off  int32
	Expr []byte // a DWARF expression; the CFA is on its stack at the start
}

// Rule is how to find the caller's registers from one range of addresses. Rules
// are shared: treat them as constants.
type Rule struct {
	// The CFA is register Reg plus Off, or what Expr computes if it is not nil.
	CFAReg  uint8
	CFAOff  int32
	CFAExpr []byte

	// RA is where the return address is. If RA.How is Undefined, this is the thread's first frame;
	// if it is Same, the address is in the architecture's link register (not on amd64).
	RA Save

	// Saves are the other registers that have to be restored, by number.
	Saves []Save

	// Keep has a bit for each register that has the caller's value after the step, because the
	// calling convention preserves it or Saves restores it.
	Keep uint32

	// Signal says that the frame is a signal's: its caller was interrupted at the very address
	// found, not after a call.
	Signal bool

	// Simple says that the CFA is a register plus an offset, the return address is at CFA-8, and at
	// most the frame pointer is saved (at CFA + FPOff, if not 0).
	Simple bool
	FPOff  int32
}

// kept returns the registers that a called function must preserve (System V AMD64 psABI 3.2.1;
// AAPCS64 6.1.1), without the stack pointer, which every step computes.
func kept(a cpu.Arch) uint32 {
	if a == cpu.ARM64 {
		return (1<<(cpu.X29-19+1) - 1) << 19 // x19 to x29
	}
	return 1<<cpu.RBX | 1<<cpu.RBP | 1<<cpu.R12 | 1<<cpu.R13 | 1<<cpu.R14 | 1<<cpu.R15
}

// Columns. Registers other than the general ones are not followed, but rules for them must be
// skipped.
const (
	columns   = 33
	amd64RA   = 16 // the psABI's number of the return address column
	noColumn  = 255
	maxLength = 1 << 20 // bytes of one CIE or FDE
)

// finish makes a Rule from the state after a table's program.
func (st *state) finish(raColumn uint8, arch cpu.Arch, signal bool, key []byte, rules map[string]*Rule) *Rule {
	key = st.key(key[:0], raColumn, signal)
	if r := rules[string(key)]; r != nil {
		return r
	}
	r := &Rule{CFAReg: st.cfaReg, CFAOff: st.cfaOff, Signal: signal, Keep: kept(arch)}
	if st.cfaExpr != nil {
		r.CFAExpr = append([]byte{}, st.cfaExpr...)
	}
	simple := st.cfaExpr == nil && !signal && arch == cpu.AMD64
	fp := uint8(cpu.RBP)
	if arch == cpu.ARM64 {
		fp = cpu.X29
	}
	for i := range st.regs {
		c := &st.regs[i]
		s := Save{Reg: uint8(i), How: c.how, Off: c.off}
		if c.expr != nil {
			s.Expr = append([]byte{}, c.expr...)
		}
		if uint8(i) == raColumn {
			r.RA = s
			if c.how != AtCFA || c.off != -8 {
				simple = false
			}
			if arch == cpu.AMD64 {
				continue
			}
		}
		if i >= cpu.NumRegs || (arch == cpu.AMD64 && i >= amd64RA) {
			continue
		}
		switch c.how {
		case Same:
			continue
		case Undefined:
			r.Keep &^= 1 << i
			continue
		}
		r.Saves = append(r.Saves, s)
		r.Keep |= 1 << i
		if uint8(i) == fp && c.how == AtCFA {
			r.FPOff = c.off
		} else {
			simple = false
		}
	}
	r.Simple = simple
	if len(rules) < maxRules {
		rules[string(key)] = r
	}
	return r
}

// maxRules bounds how many rules of one file's tables are kept; further rules are rebuilt each
// time. Real files have some hundreds of different rules.
const maxRules = 1 << 16
