package v8

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/x86"
)

// how is the state of the frame of code that a thread stopped in.
type how uint8

const (
	unclear how = iota
	built       // rbp points at it
	returns     // there is no frame: the return address lies depth above the stack pointer
	saved       // the caller's rbp lies depth above the stack pointer, the return address just above it
)

// leaf is what is known of an instruction that a thread stopped at.
type leaf struct {
	how      how
	depth    int32 // bytes
	entering bool  // the function has just been called: registers are as its caller left them
}

// frameless reports whether a built-in function works on its caller's frame, or calls without a
// frame of its own, so that rbp says nothing about it. Such functions are written by hand, and
// begin in a way that otherwise only code with a frame does.
func (vm *VM) frameless(mem walk.Memory, p place) bool {
	if p.role == opaque || p.role == entry || !p.builtin {
		return p.role == opaque
	}
	is, ok := vm.crooked[p.start]
	if !ok {
		l := read(mem, p.start, true, vm.own)
		is = l.how == built || l.how == saved
		if len(vm.crooked) < maxBuiltins {
			vm.crooked[p.start] = is
		}
	}
	return is
}

// own reports whether an address is in V8's code that may be followed.
func (vm *VM) own(at uint64) bool {
	p, ok := vm.find(at)
	return ok && p.role != opaque
}

const (
	maxSteps    = 400
	maxWays     = 32
	maxLeaves   = 1 << 14
	longestInst = 15
)

// leaf determines the state of the frame where a thread stopped.
func (vm *VM) leaf(mem walk.Memory, pc uint64, p place) leaf {
	if l, ok := vm.leaves[pc]; ok {
		return l
	}
	var l leaf
	if !vm.frameless(mem, p) {
		l = read(mem, pc, p.builtin, vm.own)
	}
	if len(vm.leaves) < maxLeaves {
		vm.leaves[pc] = l
	}
	return l
}

// way is a path that the code may take.
type way struct {
	pc    uint64
	depth int32 // of the stack pointer, relative to where it is now
	known bool
	// copied are words that the path itself has pushed again: functions that make a tail call put
	// the return address before its arguments.
	copied [4]struct{ to, from int32 }
	copies int
}

// read follows V8's code from pc on until the state of the frame is known: whichever path is taken,
// code that removes a frame has one, and code that makes one has none. V8 calls nothing without a
// frame (a compiler's code: src/compiler/backend/frame-elider.cc), so a call on the path means that
// there is one. builtin says that a jump through a register leads to another function; in generated
// code it may stay in a regular expression's code. own reports whether an address is in V8's code.
func read(mem walk.Memory, pc uint64, builtin bool, own func(uint64) bool) leaf {
	var waiting [maxWays]way
	n := 0
	at := way{pc: pc, known: true}
	seen := map[uint64]bool{}
	for range maxSteps {
		inst, ok := decode(mem, at.pc)
		if ok = ok && !seen[at.pc]; ok {
			seen[at.pc] = true
			l, next, more := apply(&inst, &at, builtin)
			if l.how != unclear {
				return l
			}
			if more != 0 && n < maxWays && own(more) {
				waiting[n] = at
				waiting[n].pc = more
				n++
			}
			if ok = next != 0 && own(next); ok {
				at.pc = next
			}
		}
		if ok {
			continue
		}
		if n == 0 {
			break
		}
		n--
		at = waiting[n]
	}
	return leaf{}
}

func decode(mem walk.Memory, pc uint64) (x86asm.Inst, bool) {
	var code [longestInst]byte
	if mem == nil || !mem.Bytes(pc, code[:]) {
		return x86asm.Inst{}, false
	}
	if n := native.VectorLength(code[:]); n > 0 {
		return x86asm.Inst{Op: x86asm.NOP, Len: n}, true
	}
	inst, err := x86.Decode(code[:])
	return inst, err == nil && inst.Len > 0
}

// apply returns what one instruction tells, where the code continues after it (0: nowhere), and
// where else it may continue.
func apply(inst *x86asm.Inst, at *way, builtin bool) (l leaf, next, more uint64) {
	next = at.pc + uint64(inst.Len)
	end := func(h how) (leaf, uint64, uint64) {
		depth := at.depth
		for i := at.copies - 1; i >= 0 && depth < 0; i-- {
			if at.copied[i].to == depth {
				depth = at.copied[i].from
			}
		}
		if !at.known || depth < 0 {
			return leaf{}, 0, 0
		}
		return leaf{how: h, depth: depth}, 0, 0
	}
	begin := func(h how) (leaf, uint64, uint64) {
		l, _, _ := end(h)
		l.entering = l.how != unclear
		return l, 0, 0
	}
	reg := func(i int) x86asm.Reg { r, _ := inst.Args[i].(x86asm.Reg); return r }
	switch inst.Op {
	case x86asm.CALL, x86asm.LEAVE:
		return leaf{how: built}, 0, 0
	case x86asm.RET:
		return end(returns)
	case x86asm.UD2, x86asm.INT, x86asm.HLT:
		return leaf{}, 0, 0
	case x86asm.PUSH:
		if reg(0) == x86asm.RBP {
			return begin(returns)
		}
		if m, ok := inst.Args[0].(x86asm.Mem); ok && m.Base == x86asm.RSP && m.Index == 0 && m.Disp >= 0 && m.Disp < 1<<16 && at.copies < len(at.copied) {
			at.copied[at.copies].to, at.copied[at.copies].from = at.depth-8, at.depth+int32(m.Disp)
			at.copies++
		}
		at.depth -= 8
	case x86asm.POP:
		if reg(0) == x86asm.RBP {
			return end(saved)
		}
		if at.depth += 8; reg(0) == x86asm.RSP {
			at.known = false
		}
	case x86asm.CMP, x86asm.TEST:
	case x86asm.PUSHFQ:
		at.depth -= 8
	case x86asm.POPFQ:
		at.depth += 8
	case x86asm.MOV:
		switch {
		case reg(0) == x86asm.RSP && reg(1) == x86asm.RBP:
			return leaf{how: built}, 0, 0
		case reg(0) == x86asm.RBP && reg(1) == x86asm.RSP:
			return begin(saved)
		case reg(0) == x86asm.RBP:
			if m, ok := inst.Args[1].(x86asm.Mem); ok && m.Base == x86asm.RBP && m.Index == 0 && m.Disp == 0 {
				return leaf{how: built}, 0, 0 // code that runs a bytecode leaves it so
			}
			return leaf{}, 0, 0
		case reg(0) == x86asm.RSP:
			at.known = false
		}
	case x86asm.JMP:
		switch a := inst.Args[0].(type) {
		case x86asm.Rel:
			next += uint64(int64(a))
		case x86asm.Reg:
			if builtin {
				return end(returns)
			}
			next = 0
		case x86asm.Mem:
			// Through V8's own table of entries, or a table of the function's own.
			if a.Base == x86asm.R13 && a.Index == 0 {
				return end(returns)
			}
			next = 0
		}
	case x86asm.ADD, x86asm.SUB:
		if reg(0) == x86asm.RSP {
			if imm, ok := inst.Args[1].(x86asm.Imm); ok && imm >= -1<<20 && imm <= 1<<20 {
				if inst.Op == x86asm.SUB {
					imm = -imm
				}
				at.depth += int32(imm)
			} else {
				at.known = false
			}
		}
	case x86asm.LEA:
		m, _ := inst.Args[1].(x86asm.Mem)
		switch {
		case reg(0) == x86asm.RSP && m.Base == x86asm.RBP:
			return leaf{how: built}, 0, 0
		case reg(0) == x86asm.RSP && m.Base == x86asm.RSP && m.Index == 0 && m.Disp >= -1<<20 && m.Disp <= 1<<20:
			at.depth += int32(m.Disp)
		case reg(0) == x86asm.RSP:
			at.known = false
		}
	default:
		if a, ok := inst.Args[0].(x86asm.Rel); ok { // a conditional jump
			more = next + uint64(int64(a))
		} else if reg(0) == x86asm.RSP {
			at.known = false
		}
	}
	if at.depth < -1<<20 || at.depth > 1<<20 {
		at.known, at.depth = false, 0
	}
	return leaf{}, next, more
}
