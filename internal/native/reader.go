package native

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/walk"
)

// Reader finds the callers of x86-64 code that no table describes by reading the
// code, for runtimes that know where the code is that they generated but not
// what each piece of it does to the stack. It is used from one goroutine.
type Reader struct{ code codeReader }

// maxSwept bounds how many instructions Pushes looks at.
const maxSwept = 1 << 15

// Pushes says whether any instruction of a function's body lowers the stack
// pointer, so that it is not at the same distance from the return address
// everywhere. Calls do not count.
func (r *Reader) Pushes(code []byte) bool {
	m := codeCopy{0x1000, code}
	hi := m.lo + uint64(len(code))
	for pc, n := m.lo, 0; pc < hi && n < maxSwept; n++ {
		inst, ok := r.code.decode(&m, pc, m.lo, hi)
		if !ok {
			pc++
			continue
		}
		pc += uint64(inst.Len)
		switch inst.Op {
		case x86asm.PUSH, x86asm.PUSHFQ:
			return true
		case x86asm.SUB, x86asm.LEA, x86asm.AND:
			if isSP(inst.Args[0]) {
				return true
			}
		}
	}
	return false
}

// Rule reads code from pc to a return and gives the rule for the caller of what
// runs at pc, nil if no return was reached. code holds the instructions from the
// address lo on; nothing outside of it is looked at.
func (r *Reader) Rule(code []byte, lo, pc uint64) *ehframe.Rule {
	r.code.popped = true
	return r.code.rule(&codeCopy{lo, code}, pc, pc, lo, lo+uint64(len(code)))
}

// Caller gives the return address that a rule leads to and where it was stored.
func Caller(c *walk.Cursor, r *ehframe.Rule) (ra, at uint64, ok bool) {
	if r.CFAExpr != nil || c.Regs.Known&(1<<r.CFAReg) == 0 || r.RA.How != ehframe.AtCFA {
		return 0, 0, false
	}
	at = c.Regs.R[r.CFAReg] + uint64(int64(r.CFAOff)) + uint64(int64(r.RA.Off))
	ra, ok = c.Word(at)
	return ra, at, ok
}

// Follow moves the Cursor to the caller by a rule and appends no frame. Of the
// registers those are known then that the rule says the code gives back.
func Follow(c *walk.Cursor, r *ehframe.Rule) bool {
	return followAny(c, r) == walk.Stepped
}

// codeCopy is a copy of code.
type codeCopy struct {
	lo   uint64
	code []byte
}

func (m *codeCopy) Word(uint64) (uint64, bool) { return 0, false }

func (m *codeCopy) Bytes(addr uint64, p []byte) bool {
	off := addr - m.lo
	if off > uint64(len(m.code)) || uint64(len(m.code))-off < uint64(len(p)) {
		return false
	}
	copy(p, m.code[off:])
	return true
}
