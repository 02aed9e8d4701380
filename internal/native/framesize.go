package native

import (
	"encoding/binary"
	"sort"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/walk"
)

// For a sleeping thread the kernel reports only the program counter and the stack pointer. The
// tables of code that is compiled with frame pointers, as some distributions compile all of theirs,
// find the frame by a register that is then not known. The size of the frame follows from the code:
// from the function's start to the instruction in question, or from there to a return.

const (
	// maxFunction bounds the code of a function that is read to find the size of its frame, in
	// bytes.
	maxFunction = 64 << 10
	// maxSizes bounds how many frame sizes are remembered.
	maxSizes = 4096
)

// frameSize is how many bytes the canonical frame address is above the stack pointer at an
// instruction, and how certain that is.
type frameSize struct {
	bytes int32
	proof walk.Provenance
}

// noSize is stored for instructions at which the size was not found.
var noSize = frameSize{bytes: -1}

// sized is follow for a rule that needs a register that is not known: it takes the frame's size
// from the code.
func (s *Stepper) sized(c *walk.Cursor, e *entry, r *ehframe.Rule) walk.Verdict {
	regs := &c.Regs
	if regs.Arch != cpu.AMD64 || r.CFAExpr != nil || r.CFAReg >= cpu.NumRegs || regs.Known&(1<<r.CFAReg) != 0 || r.RA.How != ehframe.AtCFA {
		return walk.Stuck
	}
	size, ok := s.sizes[e.at]
	if !ok || s.sizesOf != s.generation {
		if s.sizesOf != s.generation || len(s.sizes) >= maxSizes {
			s.sizes, s.sizesOf = map[uint64]frameSize{}, s.generation
		}
		size = s.sizeAt(e.at, regs.PC)
		s.sizes[e.at] = size
	}
	if size.bytes < 0 {
		return s.calledHere(c, e.at, r)
	}
	before, known := regs.R[r.CFAReg], regs.Known
	regs.R[r.CFAReg] = regs.SP() + uint64(size.bytes) - uint64(int64(r.CFAOff))
	regs.Known |= 1 << r.CFAReg
	v := s.derived(c, r, size.proof)
	if v != walk.Stepped {
		regs.R[r.CFAReg], regs.Known = before, known
	}
	return v
}

// searchBytes is how many bytes of the stack calledHere searches.
const searchBytes = 64 << 10

// calledHere looks for the frame of a function whose size is not fixed: the nearest place that may
// be one, where a saved frame pointer lies below a return address after a call of this very
// function. An earlier call may have left the same words, so it is a guess.
func (s *Stepper) calledHere(c *walk.Cursor, at uint64, r *ehframe.Rule) walk.Verdict {
	const framePointer, returnAddress = 16, 8 // below the canonical frame address
	if r.CFAReg != cpu.RBP || r.CFAOff != framePointer || r.FPOff != -framePointer {
		return walk.Stuck
	}
	a, ok := s.find(at)
	if !ok {
		return walk.Stuck
	}
	m := s.modules[a.module]
	if m.File == nil || m.File.table == nil {
		return walk.Stuck
	}
	start, _, ok := m.File.table.Function(at - m.Bias)
	if !ok {
		return walk.Stuck
	}
	start += m.Bias
	sp := c.Regs.SP()
	// Calls leave the stack aligned to 16 bytes (System V AMD64 psABI 3.2.2).
	for cfa := (sp + framePointer + 15) &^ 15; cfa-sp < searchBytes && c.InCopy(cfa-framePointer) && c.InCopy(cfa-returnAddress); cfa += 16 {
		if ra, _ := c.Word(cfa - returnAddress); !s.calls(c, ra, start) {
			continue
		}
		c.Regs.R[cpu.RBP] = cfa - framePointer
		c.Regs.Known |= 1 << cpu.RBP
		v := followAny(c, r)
		if v == walk.Stepped {
			c.Prov = walk.Heuristic
		}
		return v
	}
	return walk.Stuck
}

// calls reports whether a direct call of the function at start ends at ra, or a call of a stub that
// jumps to it through the global offset table.
func (s *Stepper) calls(c *walk.Cursor, ra, start uint64) bool {
	const size, stub = 5, 6 // of call rel32; of jmp [rip+n]
	if ra < 4096 || !s.Executable(ra-1) {
		return false
	}
	b := c.Code(ra-size, size)
	if b == nil || b[0] != 0xe8 {
		return false
	}
	to := ra + uint64(int64(int32(binary.LittleEndian.Uint32(b[1:]))))
	if to == start {
		return true
	}
	if !s.Executable(to) {
		return false
	}
	for range 2 {
		switch b = c.Code(to, stub); {
		case b == nil:
			return false
		case b[0] == 0xf3 && b[1] == 0x0f && b[2] == 0x1e && b[3] == 0xfa: // endbr64
			to += 4
		case b[0] == 0xff && b[1] == 0x25:
			goes, ok := c.Mem.Word(to + stub + uint64(int64(int32(binary.LittleEndian.Uint32(b[2:])))))
			return ok && goes == start
		default:
			return false
		}
	}
	return false
}

// sizeAt returns the size of the frame at an instruction. pc is at, or is after the call that at
// lies in.
func (s *Stepper) sizeAt(at, pc uint64) frameSize {
	a, ok := s.find(at)
	if !ok {
		return noSize
	}
	if s.reader == nil {
		s.reader = new(codeReader)
	}
	mem, m := s.process.Memory(), s.modules[a.module]
	if m.File != nil && m.File.table != nil {
		start, end, ok := m.File.table.Function(at - m.Bias)
		if ok && end-start <= maxFunction && at-m.Bias-start < end-start {
			// A part of a function begins with the frame that the rest of it has made.
			first := m.File.table.Lookup(start)
			code := make([]byte, end-start)
			if first != nil && first.CFAExpr == nil && first.CFAReg == cpu.RSP && mem.Bytes(start+m.Bias, code) {
				var r Reader
				if n, ok := r.depthAt(code, uint32(at-m.Bias-start), at == pc); ok {
					return frameSize{n + first.CFAOff, walk.Derived}
				}
			}
		}
	}
	if r := s.reader.rule(mem, at, pc, a.start, a.end); r != nil && r.CFAExpr == nil && r.CFAReg == cpu.RSP {
		return frameSize{r.CFAOff, m.proof(mem, at, s.reader.weak)}
	}
	return noSize
}

// depthAt returns how many bytes below its place at the start of code the stack pointer is before
// the instruction at off, or if that is not exact the call that off lies in; false if the paths
// that lead there from the start disagree, or none is seen.
func (r *Reader) depthAt(code []byte, off uint32, exact bool) (int32, bool) {
	moves, ok := r.moves(code)
	if !ok || len(moves) == 0 {
		return 0, false
	}
	f := depthFlow{moves: moves, at: emptied(&r.states, len(moves)), index: emptied(&r.index, len(code))}
	for i := range moves {
		f.index[moves[i].at] = int32(i + 1)
	}
	f.start(0, depthState{seen: true, known: true})
	i := sort.Search(len(moves), func(i int) bool { return moves[i].at > off }) - 1
	if f.visits > maxVisits*len(moves) || i < 0 || exact && moves[i].at != off || !exact && !moves[i].call {
		return 0, false
	}
	st := &f.at[i]
	return st.depth, st.seen && st.known && st.depth >= 0
}
