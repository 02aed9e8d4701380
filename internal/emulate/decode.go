package emulate

import (
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/x86"
)

// operandKind is where an operand is.
type operandKind uint8

const (
	none     operandKind = iota
	general              // a general register or a part of one
	vector               // an XMM register
	inMemory             // an address that registers give
	constant
	other // a register that is not followed
)

// noReg stands for no register in an address, ripReg for the instruction pointer.
const (
	noReg  = 0xff
	ripReg = 0xfe
)

// operand is one operand of an instruction.
type operand struct {
	kind        operandKind
	reg         uint8 // hardware number
	high        bool  // bits 8 to 15: ah, ch, dh, bh
	size        uint8 // bytes
	base, index uint8 // of an address
	scale       uint8
	segment     x86asm.Reg
	value       uint64 // a constant, or an address's displacement
}

// op is a decoded instruction.
type op struct {
	pc     uint64
	next   uint64
	target uint64 // of a direct jump or call
	code   x86asm.Op
	direct bool // target is set
	narrow bool // 32-bit addresses
	repeat uint8
	cond   uint8   // condition code of a conditional jump, move or set, as in its opcode
	is     opClass // how code is executed
	imm    bool    // the last operand is a constant
	args   [3]operand
	n      int
}

// opClass tells how an instruction is executed.
type opClass uint8

const (
	integer opClass = iota
	conditionalJump
	conditionalMove
	conditionalSet
	stringOp
	sse
	nop
	opaque // not known: ends a trace
)

// Repeat prefixes.
const (
	repeatNone = iota
	repeatEqual
	repeatNotEqual
)

// opOf decodes the instruction at the start of b, which lies at pc; nil if there is none.
func opOf(b []byte, pc uint64) *op {
	o := &op{pc: pc}
	if len(b) >= 4 && b[0] == 0xf3 && b[1] == 0x0f && b[2] == 0x1e && (b[3] == 0xfa || b[3] == 0xfb) {
		o.next, o.is = pc+4, nop
		return o
	}
	if n := native.VectorLength(b); n > 0 {
		return vectorOp(o, b, n)
	}
	skip := 0
	// notrack before an indirect jump or call.
	if len(b) > 2 && b[0] == 0x3e && (b[1] == 0xff || b[1]&0xf0 == 0x40 && b[2] == 0xff) {
		skip = 1
	}
	inst, err := x86.Decode(b[skip:])
	if err != nil || inst.Len == 0 {
		return nil
	}
	o.next, o.code, o.narrow = pc+uint64(inst.Len+skip), inst.Op, inst.AddrSize == 32
	for _, p := range inst.Prefix {
		switch p &^ (x86asm.PrefixImplicit | x86asm.PrefixIgnored | x86asm.PrefixInvalid) {
		case x86asm.PrefixREP:
			o.repeat = repeatEqual
		case x86asm.PrefixREPN:
			o.repeat = repeatNotEqual
		}
		if p == 0 {
			break
		}
	}
	for _, a := range inst.Args {
		if a == nil || o.n == len(o.args) {
			break
		}
		if rel, ok := a.(x86asm.Rel); ok {
			o.target, o.direct = o.next+uint64(int64(rel)), true
			continue
		}
		o.args[o.n] = operandOf(a, inst.MemBytes)
		o.imm = o.args[o.n].kind == constant
		o.n++
	}
	// The size of a constant is that of what it is combined with.
	for i := range o.n {
		if o.args[i].kind == constant {
			if o.args[i].size = o.args[0].size; i == 0 || o.args[0].kind == constant {
				o.args[i].size = 8
			}
		}
	}
	o.classify()
	return o
}

// classify sets how the instruction is executed.
func (o *op) classify() {
	if c, ok := conditions[o.code]; ok {
		o.is, o.cond = c.is, c.cond
		return
	}
	switch o.code {
	case x86asm.NOP, x86asm.PAUSE, x86asm.PREFETCHNTA, x86asm.PREFETCHT0, x86asm.PREFETCHT1, x86asm.PREFETCHT2, x86asm.PREFETCHW,
		x86asm.MFENCE, x86asm.LFENCE, x86asm.SFENCE, x86asm.CLFLUSH:
		o.is = nop
	case x86asm.MOVSB, x86asm.MOVSW, x86asm.MOVSD, x86asm.MOVSQ, x86asm.STOSB, x86asm.STOSW, x86asm.STOSD, x86asm.STOSQ,
		x86asm.LODSB, x86asm.LODSW, x86asm.LODSD, x86asm.LODSQ, x86asm.SCASB, x86asm.SCASW, x86asm.SCASD, x86asm.SCASQ,
		x86asm.CMPSB, x86asm.CMPSW, x86asm.CMPSD, x86asm.CMPSQ:
		o.is = stringOp
	case x86asm.SYSCALL, x86asm.SYSENTER, x86asm.INT, x86asm.INTO, x86asm.ICEBP, x86asm.HLT, x86asm.UD0, x86asm.UD1, x86asm.UD2,
		x86asm.CPUID, x86asm.XGETBV, x86asm.XSAVE, x86asm.XSAVE64, x86asm.XSAVEC, x86asm.XSAVEC64, x86asm.XSAVEOPT, x86asm.XRSTOR,
		x86asm.XRSTOR64, x86asm.XSAVES, x86asm.FXSAVE, x86asm.FXSAVE64, x86asm.FXRSTOR, x86asm.FXRSTOR64, x86asm.RDTSCP,
		x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.LRET, x86asm.LCALL, x86asm.LJMP, x86asm.ENTER, x86asm.CMPXCHG16B, x86asm.CMPXCHG8B,
		x86asm.RDRAND, x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE, x86asm.JCXZ, x86asm.XBEGIN, x86asm.XEND, x86asm.XABORT, x86asm.STD,
		x86asm.PCMPESTRI, x86asm.PCMPESTRM, x86asm.PCMPISTRI, x86asm.PCMPISTRM, x86asm.MASKMOVDQU, x86asm.MASKMOVQ, x86asm.INSB, x86asm.INSW, x86asm.INSD, x86asm.OUTSB, x86asm.OUTSW, x86asm.OUTSD:
		o.is = opaque
	default:
		for i := range o.n {
			if o.args[i].kind == vector {
				o.is = sse
			}
		}
	}
}

// condition is how a conditional instruction is executed and on what.
type condition struct {
	is   opClass
	cond uint8
}

var conditions = map[x86asm.Op]condition{}

func init() {
	// In the order of condition codes (Intel SDM volume 1, appendix B).
	for i, ops := range [16][3]x86asm.Op{
		{x86asm.JO, x86asm.CMOVO, x86asm.SETO}, {x86asm.JNO, x86asm.CMOVNO, x86asm.SETNO},
		{x86asm.JB, x86asm.CMOVB, x86asm.SETB}, {x86asm.JAE, x86asm.CMOVAE, x86asm.SETAE},
		{x86asm.JE, x86asm.CMOVE, x86asm.SETE}, {x86asm.JNE, x86asm.CMOVNE, x86asm.SETNE},
		{x86asm.JBE, x86asm.CMOVBE, x86asm.SETBE}, {x86asm.JA, x86asm.CMOVA, x86asm.SETA},
		{x86asm.JS, x86asm.CMOVS, x86asm.SETS}, {x86asm.JNS, x86asm.CMOVNS, x86asm.SETNS},
		{x86asm.JP, x86asm.CMOVP, x86asm.SETP}, {x86asm.JNP, x86asm.CMOVNP, x86asm.SETNP},
		{x86asm.JL, x86asm.CMOVL, x86asm.SETL}, {x86asm.JGE, x86asm.CMOVGE, x86asm.SETGE},
		{x86asm.JLE, x86asm.CMOVLE, x86asm.SETLE}, {x86asm.JG, x86asm.CMOVG, x86asm.SETG},
	} {
		conditions[ops[0]] = condition{conditionalJump, uint8(i)}
		conditions[ops[1]] = condition{conditionalMove, uint8(i)}
		conditions[ops[2]] = condition{conditionalSet, uint8(i)}
	}
}

// operandOf converts an operand; bytes is the size of one in memory.
func operandOf(a x86asm.Arg, bytes int) operand {
	switch a := a.(type) {
	case x86asm.Imm:
		return operand{kind: constant, value: uint64(int64(a))}
	case x86asm.Mem:
		return operand{
			kind: inMemory, size: uint8(min(bytes, 255)), base: addressReg(a.Base), index: addressReg(a.Index), scale: a.Scale,
			segment: a.Segment, value: uint64(a.Disp),
		}
	case x86asm.Reg:
		switch {
		case a >= x86asm.RAX && a <= x86asm.R15:
			return operand{kind: general, reg: uint8(a - x86asm.RAX), size: 8}
		case a >= x86asm.EAX && a <= x86asm.R15L:
			return operand{kind: general, reg: uint8(a - x86asm.EAX), size: 4}
		case a >= x86asm.AX && a <= x86asm.R15W:
			return operand{kind: general, reg: uint8(a - x86asm.AX), size: 2}
		case a >= x86asm.AL && a <= x86asm.BL:
			return operand{kind: general, reg: uint8(a - x86asm.AL), size: 1}
		case a >= x86asm.AH && a <= x86asm.BH:
			return operand{kind: general, reg: uint8(a - x86asm.AH), size: 1, high: true}
		case a >= x86asm.SPB && a <= x86asm.R15B:
			return operand{kind: general, reg: uint8(a-x86asm.SPB) + 4, size: 1}
		case a >= x86asm.X0 && a <= x86asm.X15:
			return operand{kind: vector, reg: uint8(a - x86asm.X0), size: 16}
		}
	}
	return operand{kind: other}
}

// addressReg returns the hardware number of a register in an address.
func addressReg(r x86asm.Reg) uint8 {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return uint8(r - x86asm.RAX)
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return uint8(r - x86asm.EAX)
	case r == x86asm.RIP:
		return ripReg
	}
	return noReg
}

// vectorOp makes the op of an instruction with a VEX or EVEX prefix, n bytes long. Only what it may
// overwrite is known: nothing is computed.
func vectorOp(o *op, b []byte, n int) *op {
	o.next, o.is = o.pc+uint64(n), opaque
	return o
}

// Code holds the decoded instructions of a process. It is not safe for concurrent use.
type Code struct {
	recent [1 << recentBits]*op
	all    map[uint64]*op
}

// Bounds of Code.
const (
	recentBits = 10
	maxOps     = 1 << 15
)

// NewCode returns a Code without instructions.
func NewCode() *Code { return &Code{all: map[uint64]*op{}} }

// Forget drops all instructions: the process's code has changed.
func (c *Code) Forget() {
	clear(c.all)
	c.recent = [1 << recentBits]*op{}
}

// at returns the instruction at pc; nil if it cannot be read.
func (c *Code) at(pc uint64, s Space) *op {
	slot := &c.recent[pc*0x9e3779b97f4a7c15>>(64-recentBits)]
	if *slot != nil && (*slot).pc == pc {
		return *slot
	}
	o, ok := c.all[pc]
	if !ok {
		var b [15]byte
		n := s.Code(pc, b[:])
		if n > 0 && n <= len(b) {
			o = opOf(b[:n], pc)
		}
		if len(c.all) >= maxOps {
			c.Forget()
		}
		c.all[pc] = o
	}
	if o != nil {
		*slot = o
	}
	return o
}
