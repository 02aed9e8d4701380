package native

import (
	"sort"

	"golang.org/x/arch/x86/x86asm"
)

// Depth says by how many bytes the stack pointer is below the frame's own place,
// from the instruction at From to the next Depth.
type Depth struct{ From, Bytes uint32 }

// Depths are in order of From. Before the first one the depth is 0.
type Depths []Depth

// At gives the depth at the instruction at off.
func (d Depths) At(off uint64) uint64 {
	i := sort.Search(len(d), func(i int) bool { return uint64(d[i].From) > off })
	if i == 0 {
		return 0
	}
	return uint64(d[i-1].Bytes)
}

const (
	depthPasses = 3       // jumps lead backwards too
	maxDepth    = 1 << 12 // bytes
	maxDepths   = 1024    // kept of one function
)

// Depths follows the pushes and pops in the body of a function whose frame has a
// fixed size, along its jumps; false if it contradicts itself or moves the stack
// pointer in other ways. Code behind a jump that nothing leads to by a direct
// jump is taken to be where the frame is as it was made.
func (r *Reader) Depths(code []byte) (Depths, bool) {
	if len(code) > 1<<31 {
		return nil, false
	}
	s := depthSweep{r: r, m: codeCopy{0x1000, code}, targets: make(map[uint32]int64)}
	for pass := range depthPasses {
		s.last = pass == depthPasses-1
		if !s.sweep() {
			return nil, false
		}
	}
	return s.out, true
}

// depthSweep is one pass over the code.
type depthSweep struct {
	r       *Reader
	m       codeCopy
	targets map[uint32]int64 // depth where jumps lead
	last    bool
	out     Depths
}

func (s *depthSweep) sweep() bool {
	lo, hi := s.m.lo, s.m.lo+uint64(len(s.m.code))
	depth, known, n := int64(0), true, 0
	saved := false // the instruction before was push rbp at depth 0
	for pc := lo; pc < hi; {
		if n++; n > maxSwept {
			return false
		}
		at := uint32(pc - lo)
		if to, ok := s.targets[at]; ok {
			if known && to != depth {
				return false
			}
			depth, known = to, true
		} else if !known && s.last {
			depth, known = 0, true
		}
		inst, ok := s.r.code.decode(&s.m, pc, lo, hi)
		if !ok {
			if known && depth != 0 {
				return false
			}
			pc++
			continue
		}
		pc += uint64(inst.Len)
		if s.last && !s.note(at, depth) {
			return false
		}
		switch next, fine := depthAfter(inst, depth, saved); {
		case !fine:
			if known {
				return false
			}
		default:
			saved = depth == 0 && inst.Op == x86asm.PUSH && inst.Args[0] == x86asm.Arg(x86asm.RBP)
			depth = next
		}
		rel, direct := inst.Args[0].(x86asm.Rel)
		if to := int64(pc) + int64(rel) - int64(lo); direct && inst.Op != x86asm.CALL && known && to >= 0 && to < int64(len(s.m.code)) {
			if d, ok := s.targets[uint32(to)]; ok && d != depth {
				return false
			}
			s.targets[uint32(to)] = depth
		}
		switch inst.Op {
		case x86asm.JMP, x86asm.RET, x86asm.UD2, x86asm.HLT, x86asm.INT:
			known = false
		}
	}
	return true
}

// note keeps the depth at an instruction.
func (s *depthSweep) note(at uint32, depth int64) bool {
	if n := len(s.out); n == 0 && depth == 0 || n > 0 && s.out[n-1].Bytes == uint32(depth) {
		return true
	}
	s.out = append(s.out, Depth{at, uint32(depth)})
	return len(s.out) <= maxDepths
}

// depthAfter is the depth behind an instruction; false for one that moves the
// stack pointer in a way that is not followed.
func depthAfter(inst x86asm.Inst, depth int64, saved bool) (int64, bool) {
	imm, fixed := inst.Args[1].(x86asm.Imm)
	switch inst.Op {
	case x86asm.PUSH, x86asm.PUSHFQ:
		depth += 8
	case x86asm.POP, x86asm.POPFQ:
		if isSP(inst.Args[0]) {
			return 0, true // the old one, which was kept where the frame was as it was made
		}
		if depth > 0 {
			depth -= 8
		} else if inst.Args[0] != x86asm.Arg(x86asm.RBP) { // all that an epilogue pops
			return 0, false
		}
	case x86asm.SUB:
		if isSP(inst.Args[0]) {
			if !fixed || imm <= 0 {
				return 0, false
			}
			if saved {
				return 0, true // a second entry makes the frame: push rbp; sub rsp
			}
			depth += int64(imm)
		}
	case x86asm.ADD:
		if isSP(inst.Args[0]) && depth > 0 {
			if !fixed || imm < 0 || int64(imm) > depth {
				return 0, false
			}
			depth -= int64(imm)
		}
	case x86asm.LEA, x86asm.AND, x86asm.MOV, x86asm.XCHG:
		if isSP(inst.Args[0]) {
			return 0, false
		}
	}
	return depth, depth <= maxDepth
}
