package native

import (
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/walk"
)

// Reader finds the callers of x86-64 code that no table describes by reading the code. It is for
// runtimes that know where their generated code is but not what each piece of it does to the stack.
// It is used from one goroutine.
type Reader struct {
	code codeReader

	// Reused by Depths.
	swept  []move
	states []depthState
	index  []int32
	todo   []int32
}

// maxRead bounds how many instructions a Reader follows: generated methods and stubs for
// cryptography are long.
const maxRead = 4000

// Rule reads code from pc to a return and returns the rule for the caller of the code that runs at
// pc, nil if no return was reached. code holds the instructions from the address lo on; nothing
// outside of it is read. tails says that at jumps out of code the stack is as it was at its entry.
func (r *Reader) Rule(code []byte, lo, pc uint64, tails bool) *ehframe.Rule {
	r.code.popped, r.code.tails, r.code.limit = true, tails, maxRead
	return r.code.rule(&codeCopy{lo, code}, pc, pc, lo, lo+uint64(len(code)))
}

// TailRule is Rule for code that ends with a jump to other code, before which it has taken off its
// stack all that it put there: a popped word is never its return address.
func (r *Reader) TailRule(code []byte, lo, pc uint64) *ehframe.Rule {
	r.code.popped, r.code.tails, r.code.limit = false, true, maxRead
	return r.code.rule(&codeCopy{lo, code}, pc, pc, lo, lo+uint64(len(code)))
}

// Caller returns the return address that a rule leads to and where it was stored.
func Caller(c *walk.Cursor, r *ehframe.Rule) (ra, at uint64, ok bool) {
	if c.Regs.Known&(1<<r.CFAReg) == 0 || r.RA.How != ehframe.AtCFA {
		return 0, 0, false
	}
	at = c.Regs.R[r.CFAReg] + uint64(int64(r.CFAOff))
	if r.CFAExpr != nil {
		if at, ok = ehframe.Eval(r.CFAExpr, &c.Regs, c, 0, false); !ok || at <= c.Regs.SP() {
			return 0, 0, false
		}
	}
	at += uint64(int64(r.RA.Off))
	ra, ok = c.Word(at)
	return ra, at, ok
}

// Follow moves the Cursor to the caller according to a rule and appends no frame. Afterwards only
// those registers are known that, according to the rule, the code restores.
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
