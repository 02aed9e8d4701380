package native

import (
	"math/bits"
	"sort"
)

// DepthKind is how the place of a frame follows from the registers.
type DepthKind uint8

const (
	// DepthUnknown is code that was not followed, or reached by paths that disagree.
	DepthUnknown DepthKind = iota
	// DepthBytes means that the stack pointer is Bytes below its place in the frame; negative if an
	// epilogue has taken the frame off.
	DepthBytes
	// DepthOnStack means that the stack pointer's value in the frame, less Less, lies on the stack,
	// Bytes above the stack pointer.
	DepthOnStack
	// DepthInRegister means that the register Reg holds that value, less Less.
	DepthInRegister
)

// Depth is where the stack pointer is, relative to its place in the body of the frame, from the
// instruction at From to the next Depth.
type Depth struct {
	From  uint32
	Bytes int32
	Less  int32
	Kind  DepthKind
	Reg   uint8 // DWARF number
}

// Depths are in order of From. Before the first one the depth is 0.
type Depths []Depth

// At returns the depth at the instruction at off.
func (d Depths) At(off uint64) Depth {
	i := sort.Search(len(d), func(i int) bool { return uint64(d[i].From) > off })
	if i == 0 {
		return Depth{Kind: DepthBytes}
	}
	return d[i-1]
}

const (
	maxDepth  = 1 << 14 // bytes that a body lowers the stack pointer by
	maxDepths = 4096    // kept for one function
	maxVisits = 8       // of one instruction, on average
)

// Depths follows the stack pointer through the body of a function whose frame has a fixed size,
// along its jumps. It begins at the start of code, where the frame is complete. The frame is also
// taken to be complete in code that no direct jump leads to, which runtimes enter from outside,
// unless that code begins like a function. (nil, true) means that nothing moves the stack pointer;
// false, that there is too much code.
func (r *Reader) Depths(code []byte) (Depths, bool) {
	moves, ok := r.moves(code)
	if !ok || len(moves) == 0 {
		return nil, ok
	}
	f := depthFlow{moves: moves, at: emptied(&r.states, len(moves)), index: emptied(&r.index, len(code)), todo: r.todo}
	defer func() { r.todo = f.todo[:0] }()
	for i := range moves {
		f.index[moves[i].at] = int32(i + 1)
	}
	f.start(0, depthState{seen: true, known: true})
	for i := range moves {
		if f.at[i].seen {
			continue
		}
		f.weak = true
		if n := f.entry(i); n > 0 {
			for k := i; k < i+n; k++ {
				f.at[k] = depthState{seen: true, weak: true}
			}
			i += n
			if i >= len(moves) || f.at[i].seen {
				continue
			}
		}
		f.start(i, depthState{seen: true, known: true, weak: true})
	}
	if f.visits > maxVisits*len(moves) {
		return nil, false
	}
	return f.result()
}

// emptied returns n zero values in reused memory.
func emptied[T any](kept *[]T, n int) []T {
	if cap(*kept) < n {
		*kept = make([]T, n+n/4)
	}
	out := (*kept)[:n]
	clear(out)
	return out
}

// depthState is what is known before an instruction.
type depthState struct {
	seen, weak bool
	known      bool      // depth is
	stacked    bool      // an old stack pointer lies on the stack
	depth      int32     // bytes
	above      int32     // if stacked: how far above the stack pointer
	stackedAt  int32     // if stacked: the depth that it holds
	kept       uint16    // registers that hold an old stack pointer
	keptAt     [16]int16 // the depths that they stand for
}

// meet merges the states of two paths to one place: it keeps what both agree on.
func (s *depthState) meet(o *depthState) (changed bool) {
	was := *s
	if s.known && (!o.known || o.depth != s.depth) {
		s.known, s.depth = false, 0
	}
	if s.stacked && (!o.stacked || o.above != s.above || o.stackedAt != s.stackedAt) {
		s.unstack()
	}
	for left := s.kept; left != 0; left &= left - 1 {
		r := bits.TrailingZeros16(left)
		if o.kept>>r&1 == 0 || o.keptAt[r] != s.keptAt[r] {
			s.drop(uint8(r))
		}
	}
	return *s != was
}

// depthFlow is the analysis of one function.
type depthFlow struct {
	moves  []move
	at     []depthState // before each of them
	index  []int32      // of moves, plus one, by offset
	todo   []int32
	weak   bool
	visits int
}

// start follows the code from the instruction i on.
func (f *depthFlow) start(i int, s depthState) {
	f.at[i] = s
	f.todo = append(f.todo[:0], int32(i))
	for len(f.todo) > 0 {
		if f.visits++; f.visits > maxVisits*len(f.moves) {
			return
		}
		i := f.todo[len(f.todo)-1]
		f.todo = f.todo[:len(f.todo)-1]
		m, s := &f.moves[i], f.at[i]
		s.apply(m)
		if m.jump && m.to < uint32(len(f.index)) && f.index[m.to] != 0 {
			f.reach(f.index[m.to]-1, &s)
		}
		if !m.end && int(i)+1 < len(f.moves) {
			f.reach(i+1, &s)
		}
	}
}

// reach merges a state into an instruction's. Code that is only assumed to be entered from outside
// must not affect code that is known to be reached.
func (f *depthFlow) reach(i int32, s *depthState) {
	t := &f.at[i]
	if !t.seen {
		*t = *s
		t.seen, t.weak = true, f.weak
		f.todo = append(f.todo, i)
		return
	}
	if f.weak && !t.weak {
		return
	}
	if t.meet(s) {
		f.todo = append(f.todo, i)
	}
}

// entry returns how many instructions from i on make a frame, as at a second entry: push rbp,
// perhaps mov rbp,rsp, and sub rsp, and any before them that do not move the stack pointer. 0: none
// do.
func (f *depthFlow) entry(i int) int {
	const before = 4 // a stack bang, and anything else that may come first
	for k := i; k < len(f.moves) && k < i+before; k++ {
		m := &f.moves[k]
		if m.op == moveNone && !m.jump && !m.end {
			continue
		}
		if m.op != movePush || m.reg != regRBP {
			return 0
		}
		if k++; k < len(f.moves) && f.moves[k].op == moveFromSP && f.moves[k].reg == regRBP {
			k++
		}
		if k < len(f.moves) && f.moves[k].op == moveAdd && f.moves[k].n < 0 {
			return k + 1 - i
		}
		return 0
	}
	return 0
}

// result lists where the depth changes.
func (f *depthFlow) result() (Depths, bool) {
	var out Depths
	last := Depth{Kind: DepthBytes}
	for i := range f.moves {
		d := f.at[i].place()
		d.From = last.From
		if d == last {
			continue
		}
		d.From = f.moves[i].at
		if out, last = append(out, d), d; len(out) > maxDepths {
			return nil, false
		}
	}
	return out, true
}

// place returns the most precise Depth that a state allows.
func (s *depthState) place() Depth {
	switch {
	case s.known:
		return Depth{Kind: DepthBytes, Bytes: s.depth}
	case s.stacked:
		return Depth{Kind: DepthOnStack, Bytes: s.above, Less: s.stackedAt}
	case s.kept != 0:
		reg := bits.TrailingZeros16(s.kept)
		return Depth{Kind: DepthInRegister, Reg: dwarfNumber[reg], Less: int32(s.keptAt[reg])}
	}
	return Depth{}
}

// apply applies an instruction's effect on the stack pointer.
func (s *depthState) apply(m *move) {
	if m.call {
		s.kept, s.keptAt = 0, [16]int16{}
	}
	switch m.op {
	case movePush:
		s.add(-8)
		// The old stack pointer is saved, to be popped later.
		if m.reg != nowhereReg && s.kept>>m.reg&1 != 0 {
			s.stacked, s.above, s.stackedAt = true, 0, int32(s.keptAt[m.reg])
		}
	case movePop:
		s.add(8)
		s.drop(m.reg)
	case movePopSP:
		// If no instruction was seen to put it there, it must be the stack pointer that the frame
		// was made with.
		s.known, s.depth = true, 0
		if s.stacked && s.above == 0 {
			s.depth = s.stackedAt
		}
		s.unstack()
	case moveAdd:
		s.add(m.n)
	case moveFromSP:
		s.drop(m.reg)
		if s.known && s.depth >= 0 {
			s.kept, s.keptAt[m.reg] = s.kept|1<<m.reg, int16(s.depth)
		}
	case moveToSP:
		s.known = s.kept>>m.reg&1 != 0
		if s.depth = 0; s.known {
			s.depth = int32(s.keptAt[m.reg]) - m.n
		}
		s.unstack()
	case moveLost:
		s.known, s.depth = false, 0
		s.unstack()
	case moveNone:
		s.drop(m.reg)
	}
	for _, r := range m.also {
		s.drop(r)
	}
	if s.known && (s.depth > maxDepth || s.depth < -1<<20) {
		s.known, s.depth = false, 0
	}
}

// add moves the stack pointer up.
func (s *depthState) add(n int32) {
	if s.known {
		s.depth -= n
	}
	if s.stacked {
		if s.above -= n; s.above < 0 || s.above > maxDepth {
			s.unstack()
		}
	}
}

// unstack forgets the old stack pointer on the stack.
func (s *depthState) unstack() { s.stacked, s.above, s.stackedAt = false, 0, 0 }

// drop notes that a register is overwritten.
func (s *depthState) drop(reg uint8) {
	if reg != nowhereReg {
		s.kept &^= 1 << reg
		s.keptAt[reg] = 0
	}
}
