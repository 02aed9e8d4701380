package native

import (
	"sort"

	"golang.org/x/arch/x86/x86asm"
)

// Span is a piece of code, in bytes from where the code begins: from the
// instruction at From up to the one at To.
type Span struct{ From, To uint32 }

// Spans are pieces of code in order, which do not overlap.
type Spans []Span

// maxSpans bounds the pieces that are kept of one function.
const maxSpans = 64

// Inside says whether the instruction at off is not the first of a piece and
// not behind it.
func (s Spans) Inside(off uint64) bool {
	i := sort.Search(len(s), func(i int) bool { return uint64(s[i].To) > off })
	return i < len(s) && uint64(s[i].From) < off
}

// PushSpans gives the pieces of a function's body in which the stack pointer may
// be lower than elsewhere in it, so that reading the code is of use there: from
// a push to the pop that takes it back. Where pushes and pops do not pair as
// they stand, or a jump leads out of a piece or into one, it is the whole body.
func (r *Reader) PushSpans(code []byte) Spans {
	if len(code) > 1<<31 {
		return nil
	}
	m := codeCopy{0x1000, code}
	hi := m.lo + uint64(len(code))
	whole := Spans{{0, uint32(len(code))}}
	type jump struct{ from, to uint32 }
	var spans Spans
	var jumps []jump
	depth := int64(0)
	n := 0
	for pc := m.lo; pc < hi; {
		if n++; n > maxSwept {
			return whole
		}
		inst, ok := r.code.decode(&m, pc, m.lo, hi)
		if !ok {
			if depth != 0 {
				return whole
			}
			pc++
			continue
		}
		at := uint32(pc - m.lo)
		pc += uint64(inst.Len)
		was := depth
		imm, fixed := inst.Args[1].(x86asm.Imm)
		switch inst.Op {
		case x86asm.PUSH, x86asm.PUSHFQ:
			depth += 8
		case x86asm.POP, x86asm.POPFQ:
			switch {
			case isSP(inst.Args[0]):
				return whole
			case depth > 0:
				depth -= 8
			case inst.Args[0] != x86asm.Arg(x86asm.RBP): // all that an epilogue pops
				return whole
			}
		case x86asm.SUB:
			if isSP(inst.Args[0]) {
				if !fixed || imm <= 0 {
					return whole
				}
				depth += int64(imm)
			}
		case x86asm.ADD:
			if isSP(inst.Args[0]) && depth > 0 {
				if !fixed || int64(imm) > depth {
					return whole
				}
				depth -= int64(imm)
			}
		case x86asm.LEA, x86asm.AND:
			if isSP(inst.Args[0]) {
				return whole
			}
		case x86asm.RET:
			if depth > 0 {
				return whole
			}
		case x86asm.CALL:
		default:
			rel, ok := inst.Args[0].(x86asm.Rel)
			if !ok && inst.Op == x86asm.JMP && depth > 0 {
				return whole
			}
			if ok {
				to := int64(pc) + int64(rel) - int64(m.lo)
				if to < 0 || to >= int64(len(code)) {
					if depth > 0 {
						return whole
					}
				} else {
					jumps = append(jumps, jump{at, uint32(to)})
				}
			}
		}
		switch {
		case depth < 0 || depth > 1<<16:
			return whole
		case was == 0 && depth > 0:
			if len(spans) == maxSpans {
				return whole
			}
			spans = append(spans, Span{From: at})
		case was > 0 && depth == 0:
			spans[len(spans)-1].To = uint32(pc - m.lo)
		}
	}
	if depth > 0 {
		return whole
	}
	if len(spans) == 0 {
		return nil
	}
	find := func(off uint32) int {
		i := sort.Search(len(spans), func(i int) bool { return spans[i].To > off })
		if i < len(spans) && spans[i].From < off {
			return i
		}
		return -1
	}
	for _, j := range jumps {
		if find(j.from) != find(j.to) {
			return whole
		}
	}
	return spans
}
