package native

import (
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/x86"
)

// codeReader finds the caller in x86-64 code that no table describes. It follows the code from the
// program counter to a return, and tracks the stack pointer on the way: whichever path is taken,
// the stack pointer at the return is the address of the return address. This holds in prologues,
// bodies and epilogues alike, and needs no knowledge of where the function starts.
type codeReader struct {
	visited [visitedSlots]visit
	round   uint32
	later   [maxBranches]branch
	code    [16]byte

	// popped says that a jump through a register, right after the word on top of the stack was
	// popped into a register that calls do not preserve, is not a tail call: the word was the
	// return address. C compilers pop such words only to discard them.
	popped bool

	// tails says that jumps out of the code are tail calls.
	tails bool

	// weak says that the last rule was found at a jump through a register, which may be a tail call
	// or a switch.
	weak bool

	// limit is how many instructions are followed; 0 is maxInstructions.
	limit int
}

type visit struct {
	addr  uint64
	round uint32
}

// branch is a place to continue at when the path that was followed ends without a result.
type branch struct {
	pc uint64
	st pathState
}

const (
	visitedSlots    = 1024 // more than maxInstructions, so that few are forgotten
	maxBranches     = 64
	maxInstructions = 800
)

// place is an address or a value relative to another.
type place struct {
	base uint8 // a register, as it is at the start, or memoryBase and the bases after it
	ok   bool
	off  int32
}

// memoryBase and the values after it are the bases of places relative to an old stack or frame
// pointer that the stack holds (pathState.slots): code that aligns its stack keeps them there.
const memoryBase = 0xf0

const maxSlots = 2

func (p place) inMemory() bool { return p.base >= memoryBase && p.base < memoryBase+maxSlots }

// alignedBase is the base of places relative to the stack pointer after the path itself has aligned
// it, which is not known at the start.
const alignedBase = 0xff

// tracked are the registers that a function has to restore.
var tracked = [...]uint8{cpu.RBX, cpu.RBP, cpu.R12, cpu.R13, cpu.R14, cpu.R15}

// origin is where a tracked register's value at the start is now.
type origin uint8

const (
	untouched origin = iota // in the register: it is the caller's if nothing was saved before
	lost
	loaded // from the stack, where it was before the start
)

// pathState is what is known on one path.
type pathState struct {
	sp, bp place
	regs   [len(tracked)]held
	// written are places on the stack to which the path itself has stored something; their old
	// content is overwritten.
	written [12]struct {
		at  place
		reg uint8 // index into tracked, plus one; 0: none of them
		was held  // what the register held
		old place // the old stack or frame pointer that was stored, if it was one
	}
	writes int

	// slots are where the stack held, at the start, the pointers that memoryBase and the bases
	// after it stand for.
	slots [maxSlots]place

	// copied is the stack pointer that the register copy holds (hardware number).
	copied place
	copy   uint8

	touched uint16 // registers that no longer hold what they did at the start (hardware numbers)

	// top is the place from which the last instruction popped a word into a register that calls do
	// not preserve; after any other instruction it is not ok.
	top place
}

// held is what a tracked register holds.
type held struct {
	from origin
	at   place // if loaded
}

// rule reads the code at pc, within [lo, hi), and returns a rule for it or nil. at is pc, or lies
// in the call before it.
func (r *codeReader) rule(mem walk.Memory, at, pc, lo, hi uint64) *ehframe.Rule {
	if pc < lo || pc >= hi {
		return nil
	}
	r.round++
	r.weak = false
	guess := false // weak was found at a jump that may stay in the function
	st := pathState{sp: place{cpu.RSP, true, 0}, bp: place{cpu.RBP, true, 0}}
	waiting := 0
	var weak *ehframe.Rule // found at an indirect jump, which may be a tail call or a switch
	limit := r.limit
	if limit == 0 {
		limit = maxInstructions
	}
	for n := 0; n < limit; n++ {
		inst, ok := r.decode(mem, pc, lo, hi)
		if ok {
			ok = r.enter(pc)
		}
		end := !ok
		next := pc + uint64(inst.Len)
		if ok {
			switch {
			case inst.Op == x86asm.RET:
				if rule := st.result(r.popped); rule != nil {
					return rule
				}
				end = true
			case inst.Op == x86asm.JMP:
				switch a := inst.Args[0].(type) {
				case x86asm.Rel:
					if next += uint64(int64(a)); r.tails && next-lo >= hi-lo && weak == nil {
						weak = st.result(r.popped)
					}
				case x86asm.Mem:
					if a.Base == x86asm.RIP { // through the global offset table
						if rule := st.result(r.popped); rule != nil && (weak == nil || guess || n == 0) {
							weak, guess = rule, false
						}
					} else if r.tails && !r.popped && weak == nil { // through a table of methods, by code that only jumps
						weak, guess = st.result(false), true
					}
					end = true
				default:
					if r.popped && st.top.ok {
						st.sp = st.top
					}
					if weak == nil {
						weak = st.result(r.popped)
						guess = !(r.popped && st.top.ok)
					}
					end = true
				}
			case conditional(inst.Op):
				if a, ok := inst.Args[0].(x86asm.Rel); ok && waiting < maxBranches {
					r.later[waiting] = branch{next + uint64(int64(a)), st}
					waiting++
				}
			case inst.Op == x86asm.UD2, inst.Op == x86asm.HLT, inst.Op == x86asm.INT, inst.Op == x86asm.ICEBP:
				end = true
			default:
				st.apply(&inst)
			}
			if inst.Op != x86asm.JMP {
				st.top = popped(&inst, st.sp)
			}
		}
		if !end {
			pc = next
			continue
		}
		if waiting == 0 {
			break
		}
		waiting--
		pc, st = r.later[waiting].pc, r.later[waiting].st
	}
	r.weak = guess && weak != nil
	return weak
}

// decode reads the instruction at pc.
func (r *codeReader) decode(mem walk.Memory, pc, lo, hi uint64) (x86asm.Inst, bool) {
	if pc < lo || pc >= hi {
		return x86asm.Inst{}, false
	}
	b := r.code[:min(15, hi-pc)]
	if !mem.Bytes(pc, b) {
		return x86asm.Inst{}, false
	}
	// The decoder does not know the mark of an indirect branch target: endbr64.
	if len(b) >= 4 && b[0] == 0xf3 && b[1] == 0x0f && b[2] == 0x1e && b[3] == 0xfa {
		return x86asm.Inst{Op: x86asm.NOP, Len: 4}, true
	}
	if n := VectorLength(b); n > 0 {
		return x86asm.Inst{Op: x86asm.NOP, Len: n}, true
	}
	inst, err := x86.Decode(b)
	if err != nil {
		if n := threeByteLength(b); n > 0 {
			return x86asm.Inst{Op: x86asm.NOP, Len: n}, true
		}
	}
	return inst, err == nil && inst.Len > 0
}

// enter marks an address as visited; false if it was.
func (r *codeReader) enter(pc uint64) bool {
	v := &r.visited[pc*0x9e3779b97f4a7c15>>(64-10)]
	if v.round == r.round && v.addr == pc {
		return false
	}
	*v = visit{pc, r.round}
	return true
}

// popped returns the place of the word that inst has popped into a register that calls do not
// preserve, given the stack pointer after it.
func popped(inst *x86asm.Inst, sp place) place {
	if inst.Op != x86asm.POP || index(inst.Args[0]) >= 0 || isSP(inst.Args[0]) {
		return place{}
	}
	return sp.plus(-8)
}

// conditional reports whether op is a conditional jump.
func conditional(op x86asm.Op) bool {
	switch op {
	case x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JCXZ, x86asm.JE, x86asm.JECXZ, x86asm.JG, x86asm.JGE,
		x86asm.JL, x86asm.JLE, x86asm.JNE, x86asm.JNO, x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JRCXZ, x86asm.JS,
		x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE:
		return true
	}
	return false
}

// result makes the rule for a path that has reached a return.
func (st *pathState) result(below bool) *ehframe.Rule {
	if !st.sp.ok || st.sp.base == alignedBase {
		return nil
	}
	// A return to an address that the path itself has pushed. A stack that was just switched to may
	// begin with its return address.
	if st.sp.base == cpu.RSP && st.sp.off < 0 && (st.sp.off != -8 || !below || st.wrote(st.sp)) {
		return nil
	}
	r := &ehframe.Rule{CFAReg: st.sp.base, CFAOff: st.sp.off + 8}
	if st.sp.inMemory() {
		slot := st.slots[st.sp.base-memoryBase]
		if r.CFAReg = slot.base; r.CFAOff < 0 {
			return nil
		}
		r.CFAExpr = wordAt(slot, r.CFAOff)
	}
	r.RA = ehframe.Save{Reg: 16, How: ehframe.AtCFA, Off: -8}
	for i, reg := range tracked {
		g := &st.regs[i]
		switch {
		case g.from == untouched:
			r.Keep |= 1 << reg
		case g.from == loaded && g.at.base == cpu.RSP && g.at.off < 0 && st.sp.off >= 0:
			// Below the stack at the start: nothing is there yet.
		case g.from == loaded && g.at.base == st.sp.base && g.at.off < st.sp.off:
			r.Saves = append(r.Saves, ehframe.Save{Reg: reg, How: ehframe.AtCFA, Off: g.at.off - r.CFAOff})
			r.Keep |= 1 << reg
		}
	}
	return r
}

// wrote reports whether the path may have stored something to a place.
func (st *pathState) wrote(at place) bool {
	for k := range st.written[:st.writes] {
		if st.written[k].at == at {
			return true
		}
	}
	return st.writes == len(st.written)
}

// wordAt returns the DWARF expression of the word at a place, plus n.
func wordAt(p place, n int32) []byte {
	e := []byte{opBreg0 + p.base}
	for off := p.off; ; off >>= 7 {
		b := byte(off & 0x7f)
		if off>>7 == 0 && b&0x40 == 0 || off>>7 == -1 && b&0x40 != 0 {
			e = append(e, b, opDeref, opPlusConst)
			break
		}
		e = append(e, b|0x80)
	}
	return binary.AppendUvarint(e, uint64(n))
}

// DWARF 5, 7.7.1.
const (
	opDeref     = 0x06
	opPlusConst = 0x23
	opBreg0     = 0x70
)
