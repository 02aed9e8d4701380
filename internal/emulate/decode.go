package emulate

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/emulate/simd"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/x86"
)

// operandKind is where an operand is.
type operandKind uint8

const (
	none         operandKind = iota
	general                  // a general register or a part of one
	vector                   // a register of vectors: XMM, YMM, ZMM
	maskRegister             // a register of masks of AVX-512
	inMemory                 // an address that registers give
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
	args   [4]operand
	n      int

	// Instructions on vectors:
	simd      *simd.Op // nil: the result is not computed
	mask      uint8    // the register of a mask that selects elements of the result; 0: all
	vex       bool     // a VEX or EVEX prefix
	zeroing   bool     // elements that are not selected become 0
	broadcast bool     // an operand in memory is one element
	exact     bool     // the instruction says how to round
	blend     bool     // the last operand selects elements
}

// opClass tells how an instruction is executed.
type opClass uint8

const (
	integer opClass = iota
	conditionalJump
	conditionalMove
	conditionalSet
	stringOp
	vectorOp
	upperHalves // vzeroupper, vzeroall
	extension   // BMI1, BMI2
	maskOp
	clobber // changes registers of its own to what is not known
	loop
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
	length := native.VectorLength(b)
	skip := 0
	// notrack before an indirect jump or call.
	if len(b) > 2 && b[0] == 0x3e && (b[1] == 0xff || b[1]&0xf0 == 0x40 && b[2] == 0xff) {
		skip = 1
	}
	inst, err := x86.Decode(b[skip:])
	if length > 0 && (err != nil || inst.Len != length || !o.prefixed(b, &inst)) {
		o.next, o.is = pc+uint64(length), opaque
		return o
	}
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
		if length == 0 && (p.IsVEX() || p.IsEVEX()) {
			o.is = opaque // behind another prefix, which x86asm does not apply to it
			return o
		}
		if p == 0 || length > 0 {
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
	case x86asm.CPUID, x86asm.XGETBV, x86asm.RDTSCP, x86asm.PCMPESTRI, x86asm.PCMPESTRM, x86asm.PCMPISTRI, x86asm.PCMPISTRM,
		x86asm.VPCMPESTRI, x86asm.VPCMPESTRM, x86asm.VPCMPISTRI, x86asm.VPCMPISTRM, x86asm.LDMXCSR, x86asm.VLDMXCSR:
		o.is = clobber
	case x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE:
		o.is = loop
	case x86asm.VZEROUPPER, x86asm.VZEROALL:
		o.is = upperHalves
	case x86asm.ANDN, x86asm.BEXTR, x86asm.BLSI, x86asm.BLSMSK, x86asm.BLSR, x86asm.BZHI, x86asm.MULX, x86asm.PDEP, x86asm.PEXT,
		x86asm.RORX, x86asm.SARX, x86asm.SHLX, x86asm.SHRX:
		o.is = extension
	case x86asm.SYSCALL, x86asm.SYSENTER, x86asm.INT, x86asm.INTO, x86asm.ICEBP, x86asm.HLT, x86asm.UD0, x86asm.UD1, x86asm.UD2,
		x86asm.XSAVE, x86asm.XSAVE64, x86asm.XSAVEC, x86asm.XSAVEC64, x86asm.XSAVEOPT, x86asm.XRSTOR,
		x86asm.XRSTOR64, x86asm.XSAVES, x86asm.FXSAVE, x86asm.FXSAVE64, x86asm.FXRSTOR, x86asm.FXRSTOR64,
		x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.LRET, x86asm.LCALL, x86asm.LJMP, x86asm.ENTER, x86asm.CMPXCHG16B, x86asm.CMPXCHG8B,
		x86asm.FNSAVE, x86asm.FNSTENV, x86asm.FRSTOR, x86asm.JCXZ, x86asm.XBEGIN, x86asm.XEND, x86asm.XABORT, x86asm.STD,
		x86asm.MASKMOVDQU, x86asm.VMASKMOVDQU, x86asm.MASKMOVQ, x86asm.VP2INTERSECTD, x86asm.VP2INTERSECTQ, x86asm.INSB, x86asm.INSW, x86asm.INSD, x86asm.OUTSB, x86asm.OUTSW, x86asm.OUTSD:
		o.is = opaque
	default:
		o.classifyByName()
	}
}

// classifyByName classifies what x86asm has many of: instructions on vectors, masks and the numbers
// of the 387.
func (o *op) classifyByName() {
	name := o.code.String()
	if _, ok := maskOps[o.code]; ok {
		o.is = maskOp
		return
	}
	if name[0] == 'F' && o.args[0].kind == inMemory && !strings.Contains(name, "ST") {
		o.is = nop // it reads memory to registers that are not followed
		return
	}
	for i := range o.n {
		if k := o.args[i].kind; k != vector && k != maskRegister {
			continue
		}
		if o.is = vectorOp; strings.Contains(name, "GATHER") || strings.Contains(name, "SCATTER") {
			o.is = opaque // several addresses
		}
	}
	if o.is != vectorOp {
		return
	}
	if o.simd = simd.Lookup(o.code); o.args[0].kind == maskRegister {
		o.simd = simd.Mask(name)
	}
	o.blend = strings.Contains(name, "BLENDV")
	for i := range o.n {
		if o.args[i].kind == other { // MMX
			o.simd = nil
		}
	}
}

// prefixed takes over what an instruction with a VEX or EVEX prefix says besides its operands; false
// if it is none that is understood.
func (o *op) prefixed(b []byte, inst *x86asm.Inst) bool {
	o.vex, o.zeroing, o.broadcast, o.exact = true, inst.Zeroing, inst.Broadcast, inst.SAE
	modrm := map[byte]int{0xc5: 3, 0xc4: 4, 0x62: 5}[b[0]]
	if b[0] == 0x62 {
		if b[1]&0x0c != 0 {
			return false // further maps of opcodes, which x86asm takes for others
		}
		if k := b[3] & 7; k != 0 {
			if r, ok := inst.Args[1].(x86asm.Reg); !ok || r != x86asm.K0+x86asm.Reg(k) {
				return false
			}
			o.mask = k
			copy(inst.Args[1:], inst.Args[2:])
			inst.Args[len(inst.Args)-1] = nil
		}
	}
	for i, a := range inst.Args {
		if mem, ok := a.(x86asm.Mem); ok {
			if mem.Base == 0 && modrm < len(b) && b[modrm]&0xc7 == 0x05 {
				mem.Base = x86asm.RIP
				inst.Args[i] = mem
			}
			if mem.Index >= x86asm.X0 {
				return false
			}
		}
	}
	return true
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
		case a >= x86asm.X0 && a <= x86asm.X31:
			return operand{kind: vector, reg: uint8(a - x86asm.X0), size: 16}
		case a >= x86asm.Y0 && a <= x86asm.Y31:
			return operand{kind: vector, reg: uint8(a - x86asm.Y0), size: 32}
		case a >= x86asm.Z0 && a <= x86asm.Z31:
			return operand{kind: vector, reg: uint8(a - x86asm.Z0), size: 64}
		case a >= x86asm.K0 && a <= x86asm.K7:
			return operand{kind: maskRegister, reg: uint8(a - x86asm.K0), size: 8}
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
