package ehframe

import "github.com/candid-profiler/candid/internal/cpu"

// Words reads a process's memory.
type Words interface {
	Word(addr uint64) (uint64, bool)
}

// Bounds of an expression: real ones have a dozen operations and need three
// places on the stack.
const (
	maxOperations = 512
	maxStack      = 32
)

// Eval computes a DWARF expression (DWARF 5, section 2.5) over a frame's registers. With push,
// first is on the stack at the start. It fails for registers that are not known, memory that cannot
// be read, and operations that unwind tables do not use.
func Eval(expr []byte, regs *cpu.Registers, mem Words, first uint64, push bool) (uint64, bool) {
	var stack [maxStack]uint64
	n := 0
	if push {
		stack[0], n = first, 1
	}
	r := reader{b: expr}
	for steps := 0; r.more(); steps++ {
		if steps == maxOperations {
			return 0, false
		}
		op := r.u8()
		var v uint64
		switch {
		case op >= 0x30 && op <= 0x4f: // lit0 to lit31
			v = uint64(op - 0x30)
		case op >= 0x50 && op <= 0x6f: // reg0 to reg31
			reg := op - 0x50
			if regs.Known&(1<<reg) == 0 {
				return 0, false
			}
			v = regs.R[reg]
		case op >= 0x70 && op <= 0x8f, op == 0x92: // breg0 to breg31, bregx
			reg := uint64(op - 0x70)
			if op == 0x92 {
				reg = r.uleb()
			}
			off := r.sleb()
			switch {
			case reg == amd64RA && regs.Arch == cpu.AMD64:
				v = regs.PC + uint64(off)
			case reg >= cpu.NumRegs || regs.Known&(1<<reg) == 0:
				return 0, false
			default:
				v = regs.R[reg] + uint64(off)
			}
		case op == 0x03 || op == 0x0e: // addr, const8u
			v = r.u64()
		case op == 0x0f: // const8s
			v = r.u64()
		case op == 0x08:
			v = uint64(r.u8())
		case op == 0x09:
			v = uint64(int64(int8(r.u8())))
		case op == 0x0a:
			v = uint64(r.u16())
		case op == 0x0b:
			v = uint64(int64(int16(r.u16())))
		case op == 0x0c:
			v = uint64(r.u32())
		case op == 0x0d:
			v = uint64(int64(int32(r.u32())))
		case op == 0x10:
			v = r.uleb()
		case op == 0x11:
			v = uint64(r.sleb())
		case op == 0x9c: // call_frame_cfa
			if !push {
				return 0, false
			}
			v = first
		default:
			if n = operate(op, &stack, n, &r, mem); n < 0 || r.bad {
				return 0, false
			}
			continue
		}
		if n == maxStack {
			return 0, false
		}
		stack[n] = v
		n++
	}
	if r.bad || n == 0 {
		return 0, false
	}
	return stack[n-1], true
}

// operate executes an operation on the stack and returns its new height, or -1.
func operate(op byte, st *[maxStack]uint64, n int, r *reader, mem Words) int {
	need := 2
	switch op {
	case 0x96, 0x2f: // nop, skip
		need = 0
	case 0x06, 0x12, 0x13, 0x15, 0x19, 0x1f, 0x20, 0x23, 0x28, 0x94: // one operand
		need = 1
	case 0x17: // rot
		need = 3
	}
	if n < need || n == maxStack {
		return -1
	}
	var a, b uint64 // a below b
	if n > 0 {
		b = st[n-1]
	}
	if n > 1 {
		a = st[n-2]
	}
	one := func(v uint64) int { st[n-1] = v; return n }
	two := func(v uint64) int { st[n-2] = v; return n - 1 }
	truth := func(t bool) int {
		if t {
			return two(1)
		}
		return two(0)
	}
	switch op {
	case 0x96: // nop
		return n
	case 0x06, 0x94: // deref, deref_size
		size := byte(8)
		if op == 0x94 {
			size = r.u8()
		}
		if size == 0 || size > 8 || mem == nil {
			return -1
		}
		v, ok := mem.Word(b)
		if !ok {
			return -1
		}
		if size < 8 {
			v &= 1<<(8*size) - 1
		}
		return one(v)
	case 0x12: // dup
		st[n] = b
		return n + 1
	case 0x13: // drop
		return n - 1
	case 0x14: // over
		st[n] = a
		return n + 1
	case 0x15: // pick
		i := int(r.u8())
		if i >= n {
			return -1
		}
		st[n] = st[n-1-i]
		return n + 1
	case 0x16: // swap
		st[n-1], st[n-2] = a, b
		return n
	case 0x17: // rot
		st[n-1], st[n-2], st[n-3] = a, st[n-3], b
		return n
	case 0x19: // abs
		if int64(b) < 0 {
			b = -b
		}
		return one(b)
	case 0x1f:
		return one(-b)
	case 0x20:
		return one(^b)
	case 0x23: // plus_uconst
		return one(b + r.uleb())
	case 0x1a:
		return two(a & b)
	case 0x1b: // div, signed
		if b == 0 || (b == ^uint64(0) && a == 1<<63) {
			return -1
		}
		return two(uint64(int64(a) / int64(b)))
	case 0x1c:
		return two(a - b)
	case 0x1d: // mod
		if b == 0 {
			return -1
		}
		return two(a % b)
	case 0x1e:
		return two(a * b)
	case 0x21:
		return two(a | b)
	case 0x22:
		return two(a + b)
	case 0x24:
		return two(a << min(b, 64))
	case 0x25:
		return two(a >> min(b, 64))
	case 0x26:
		return two(uint64(int64(a) >> min(b, 63)))
	case 0x27:
		return two(a ^ b)
	case 0x29:
		return truth(a == b)
	case 0x2a:
		return truth(int64(a) >= int64(b))
	case 0x2b:
		return truth(int64(a) > int64(b))
	case 0x2c:
		return truth(int64(a) <= int64(b))
	case 0x2d:
		return truth(int64(a) < int64(b))
	case 0x2e:
		return truth(a != b)
	case 0x2f, 0x28: // skip, bra
		d := int(int16(r.u16()))
		if op == 0x28 {
			n--
			if b == 0 {
				return n
			}
		}
		if to := r.pos + d; to >= 0 && to <= len(r.b) {
			r.pos = to
			return n
		}
		return -1
	}
	return -1
}

// RegisterPlus returns the expression of a register, at most 31, plus an offset (DW_OP_breg).
func RegisterPlus(reg uint8, off int32) []byte {
	e := []byte{0x70 + reg&31}
	for {
		b := byte(off & 0x7f)
		if off >>= 7; off == 0 && b&0x40 == 0 || off == -1 && b&0x40 != 0 {
			return append(e, b)
		}
		e = append(e, b|0x80)
	}
}
