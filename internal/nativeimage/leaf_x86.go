package nativeimage

import (
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/x86"
)

// leaf is what is known of the frame of code that a thread stopped in.
type leaf struct {
	known bool
	built bool   // the frame is whole; else it was not made yet, or is gone, there is none, or the code does not end
	out   bool   // native code calls the method
	depth uint32 // bytes from the stack pointer to the return address
}

const (
	maxLeaves   = 1 << 16
	maxSteps    = 2000 // instructions that are read for one leaf
	maxWays     = 64
	maxSweep    = 20000
	longestInst = 15
)

// codeReader decides by reading instructions whether a frame is whole. The compiler makes a frame by
// one subtraction from the stack pointer (or addition of a negative number), and removes it by one
// addition, just before the method returns or jumps to another (AMD64FrameMap and
// SubstrateAMD64Backend). Between the two nothing moves the stack pointer for long. So whatever way
// the code takes from where a thread stopped, it first comes to one of these or to a call, which
// nothing makes without a frame, and that says where the thread is. It is used from one goroutine.
type codeReader struct {
	ways []way
	seen map[uint64]bool
	code [longestInst]byte
}

// way is a path that the code may take.
type way struct {
	pc    uint64
	depth int64  // of the stack pointer, upwards, relative to where the thread stopped
	table uint64 // whose address was taken last: of a switch, in the method itself
}

// leaf reads the code at pc, in the method that holds it.
func (r *codeReader) leaf(mem walk.Memory, im *mapped, pc uint64) leaf {
	m, end, ok := im.table.method(pc - im.code.start)
	if !ok {
		return leaf{}
	}
	size := int64(uint32(m.frame) &^ frameFlags)
	l := leaf{known: true, out: m.frame&frameEntryPoint != 0}
	if size < 8 {
		return leaf{}
	}
	body := span{im.code.start + uint64(m.start), im.code.start + end}
	if pc == body.start {
		return l
	}
	if size == 8 && r.plain(mem, body) {
		return l
	}
	depth, ok := r.read(mem, im, body, pc, size)
	swept := !ok
	if swept {
		depth, ok = r.sweep(mem, body, pc, size)
	}
	if !ok || depth < 0 || depth > size {
		return leaf{}
	}
	l.depth, l.built = uint32(depth), size > 8 && depth == size-8 && !swept
	return l
}

// plain reports whether a method without a frame leaves the stack pointer alone.
func (r *codeReader) plain(mem walk.Memory, body span) bool {
	pc := body.start
	for range maxSteps {
		if pc >= body.end {
			return true
		}
		inst, ok := r.decode(mem, pc)
		if !ok {
			return false
		}
		switch inst.Op {
		case x86asm.PUSH, x86asm.POP, x86asm.PUSHFQ, x86asm.POPFQ, x86asm.CALL, x86asm.LEAVE, x86asm.ENTER:
			return false
		}
		if a, ok := inst.Args[0].(x86asm.Reg); ok && a == x86asm.RSP && inst.Op != x86asm.CMP && inst.Op != x86asm.TEST {
			return false
		}
		pc += uint64(inst.Len)
	}
	return false
}

func (r *codeReader) decode(mem walk.Memory, pc uint64) (x86asm.Inst, bool) {
	code := r.code[:]
	if !mem.Bytes(pc, code) {
		n := 4096 - pc&4095 // the memory may end here
		if n >= longestInst || !mem.Bytes(pc, code[:n]) {
			return x86asm.Inst{}, false
		}
		clear(code[n:])
	}
	if n := native.VectorLength(code); n > 0 {
		return x86asm.Inst{Op: x86asm.NOP, Len: n}, true
	}
	inst, err := x86.Decode(code)
	if err != nil {
		n := native.OpaqueLength(code)
		return x86asm.Inst{Op: x86asm.NOP, Len: n}, n > 0
	}
	return inst, inst.Len > 0
}

// read follows the code from pc on until it is clear how far the return address lies above the
// stack pointer, in bytes. size is the size of the whole frame.
func (r *codeReader) read(mem walk.Memory, im *mapped, body span, pc uint64, size int64) (int64, bool) {
	if r.seen == nil {
		r.seen = map[uint64]bool{}
	}
	clear(r.seen)
	r.ways = append(r.ways[:0], way{pc: pc})
	for steps := 0; len(r.ways) > 0 && steps < maxSteps; {
		w := r.ways[len(r.ways)-1]
		r.ways = r.ways[:len(r.ways)-1]
		for steps < maxSteps && !r.seen[w.pc] {
			r.seen[w.pc] = true
			inst, ok := r.decode(mem, w.pc)
			if !ok {
				break
			}
			steps++
			at, how, more := r.apply(&inst, &w, body, im, size)
			if how == decided {
				return at, true
			}
			if more != 0 && len(r.ways) < maxWays && body.has(more) {
				r.ways = append(r.ways, way{more, w.depth, w.table})
			}
			if how == ended {
				if _, ok := inst.Args[0].(x86asm.Reg); ok && inst.Op == x86asm.JMP && w.table != 0 {
					r.switches(mem, &w, body)
				}
				break
			}
		}
	}
	return 0, false
}

// maxCases is how many cases of a switch are followed.
const maxCases = 8

// switches adds the cases of a switch. Its table holds their offsets from itself.
func (r *codeReader) switches(mem walk.Memory, w *way, body span) {
	var b [4]byte
	for i := uint64(0); i < maxCases && len(r.ways) < maxWays; i++ {
		if !mem.Bytes(w.table+4*i, b[:]) {
			return
		}
		to := w.table + uint64(int64(int32(binary.LittleEndian.Uint32(b[:]))))
		if !body.has(to) {
			return
		}
		r.ways = append(r.ways, way{pc: to, depth: w.depth})
	}
}

// sweep reads a method from its beginning to pc, and returns what read does. Where its code goes
// round and round, or ends in ways that read does not know, the place of pc says it all: behind what
// makes the frame, and not between what removes it and the end of that way.
func (r *codeReader) sweep(mem walk.Memory, body span, pc uint64, size int64) (int64, bool) {
	if size <= 8 {
		return 0, false
	}
	made, gone := false, false
	at := body.start
	for n := 0; at < pc && n < maxSweep; n++ {
		inst, ok := r.decode(mem, at)
		if !ok {
			return 0, false
		}
		by := int64(0)
		if reg, _ := inst.Args[0].(x86asm.Reg); reg == x86asm.RSP && inst.Op != x86asm.CMP && inst.Op != x86asm.TEST {
			imm, _ := inst.Args[1].(x86asm.Imm)
			m, _ := inst.Args[1].(x86asm.Mem)
			switch {
			case inst.Op == x86asm.ADD:
				by = int64(imm)
			case inst.Op == x86asm.SUB:
				by = -int64(imm)
			case inst.Op == x86asm.LEA && m.Base == x86asm.RSP && m.Index == 0:
				by = m.Disp
			}
			switch {
			case by == 8-size && !made:
				made = true
			case by == size-8 && made && !gone:
				gone = true
			default:
				return 0, false
			}
		}
		switch inst.Op {
		case x86asm.PUSH, x86asm.POP, x86asm.PUSHFQ, x86asm.POPFQ, x86asm.LEAVE:
			return 0, false
		case x86asm.RET, x86asm.JMP:
			gone = false
		}
		at += uint64(inst.Len)
	}
	if at != pc || !made || gone {
		return 0, false
	}
	return size - 8, true
}

// outcome is what an instruction tells.
type outcome uint8

const (
	goesOn outcome = iota
	ended          // nothing follows it, or nothing that is known
	decided
)

// apply moves w over an instruction. more is where the code may continue too, 0 for nowhere.
func (r *codeReader) apply(inst *x86asm.Inst, w *way, body span, im *mapped, size int64) (at int64, how outcome, more uint64) {
	next := w.pc + uint64(inst.Len)
	whole := size - 8
	reg := func(i int) x86asm.Reg { r, _ := inst.Args[i].(x86asm.Reg); return r }
	moved := func(by int64) outcome {
		switch {
		case -by == whole || -by == whole-8:
			// It makes the frame; the second, after the frame pointer was pushed.
			at = w.depth + whole + by
			return decided
		case by == whole && w.depth == 0:
			at = whole
			return decided
		}
		w.depth += by
		return goesOn
	}
	switch inst.Op {
	case x86asm.CALL:
		if size == 8 {
			return 0, ended, 0
		}
		return whole + w.depth, decided, 0
	case x86asm.RET:
		return w.depth, decided, 0
	case x86asm.UD2, x86asm.INT, x86asm.HLT:
		return 0, ended, 0
	case x86asm.PUSH, x86asm.PUSHFQ:
		w.depth -= 8
	case x86asm.POP, x86asm.POPFQ:
		w.depth += 8
		if reg(0) == x86asm.RSP {
			return 0, ended, 0
		}
	case x86asm.ADD, x86asm.SUB:
		if reg(0) == x86asm.RSP {
			imm, ok := inst.Args[1].(x86asm.Imm)
			if !ok || imm > maxFrame || imm < -maxFrame {
				return 0, ended, 0
			}
			by := int64(imm)
			if inst.Op == x86asm.SUB {
				by = -by
			}
			if o := moved(by); o != goesOn {
				return at, o, 0
			}
		}
	case x86asm.LEA:
		if reg(0) == x86asm.RSP {
			m, _ := inst.Args[1].(x86asm.Mem)
			if m.Base != x86asm.RSP || m.Index != 0 || m.Disp > maxFrame || m.Disp < -maxFrame {
				return 0, ended, 0
			}
			if o := moved(m.Disp); o != goesOn {
				return at, o, 0
			}
		} else if m, ok := inst.Args[1].(x86asm.Mem); ok && m.Base == x86asm.RIP {
			if to := next + uint64(m.Disp); body.has(to) {
				w.table = to
			}
		}
	case x86asm.JMP:
		a, ok := inst.Args[0].(x86asm.Rel)
		if !ok {
			return 0, ended, 0 // a switch, or another method
		}
		if next += uint64(int64(a)); !body.has(next) {
			// It goes on in another method.
			if m, _, ok := im.table.method(next - im.code.start); ok && im.code.start+uint64(m.start) == next {
				return w.depth, decided, 0
			}
			return 0, ended, 0
		}
	case x86asm.CMP, x86asm.TEST:
	default:
		if a, ok := inst.Args[0].(x86asm.Rel); ok { // a conditional jump
			more = next + uint64(int64(a))
		} else if reg(0) == x86asm.RSP {
			return 0, ended, 0
		}
	}
	if w.depth < -maxFrame || w.depth > maxFrame || !body.has(next) {
		return 0, ended, more
	}
	w.pc = next
	return 0, goesOn, more
}
