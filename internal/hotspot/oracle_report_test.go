//go:build linux && amd64

package hotspot

import (
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// reportedCode is how many bytes of code a report shows on each side of the program counter.
const reportedCode = 96

// registerNames are the names of registers by DWARF number.
var registerNames = [...]string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// bad reports a wrong answer with everything needed to write a rule for it: the blob and its code
// around the pc, the registers, the stack and the callers.
func (s *stepped) bad(format string, args ...any) {
	s.wrong++
	var out strings.Builder
	pc, regs := s.tr.PC(), s.tr.Regs()
	fmt.Fprintf(&out, "%s\n", fmt.Sprintf(format, args...))
	b := s.vm.find(pc)
	switch {
	case s.vm.inInterpreter(pc):
		fmt.Fprintf(&out, "step %d pc %#x in the interpreter+%#x\n", s.tr.Steps(), pc, pc-s.vm.interpLo)
	case b == nil:
		fmt.Fprintf(&out, "step %d pc %#x in no blob\n", s.tr.Steps(), pc)
	default:
		fmt.Fprintf(&out, "step %d pc %#x %s (%s) kind %d code %#x..%#x+%#x frame %d complete +%#x", s.tr.Steps(), pc,
			b.name, s.methodName(b), b.kind, b.codeBegin, b.codeEnd, pc-b.codeBegin, b.frameSize, b.frameComplete-b.codeBegin)
		if b.nm != nil {
			fmt.Fprintf(&out, " level %d osr %v vep +%#x stubs +%#x", b.nm.level, b.nm.osr, b.nm.verifiedEntry-b.codeBegin, b.nm.stubBegin-b.codeBegin)
		}
		out.WriteByte('\n')
	}
	for i, v := range s.stack.Frames {
		fmt.Fprintf(&out, "  answered %d: %s pc %#x kind %d prov %d\n", i, s.frameName(v), v.PC, v.Kind, v.Prov)
	}
	if n := len(s.stack.Frames); n > 0 {
		if b := s.vm.find(s.stack.Frames[n-1].PC); b != nil {
			fmt.Fprintf(&out, "  the last in %s (%s) code %#x..%#x frame %d", b.name, s.methodName(b), b.codeBegin, b.codeEnd, b.frameSize)
		}
		fmt.Fprintf(&out, "  goes on at pc %#x sp %#x fp %#x\n", s.c.Regs.PC, s.c.Regs.SP(), s.c.Regs.FP())
	}
	for r := range 16 {
		fmt.Fprintf(&out, " %s %#x", registerNames[r], regs.R[r])
	}
	out.WriteByte('\n')
	for i := range uint64(40) {
		w, _ := s.tr.Memory().Word(regs.SP() + 8*i)
		mark := ""
		if s.vm.inCodeCache(w) {
			mark = "*"
		}
		fmt.Fprintf(&out, " %x%s", w, mark)
	}
	out.WriteByte('\n')
	calls := s.tr.Callers()
	for i := len(calls) - 1; i >= max(0, len(calls)-4); i-- {
		fmt.Fprintf(&out, "  truth: returns to %#x at %#x\n", calls[i].RA, calls[i].SP)
	}
	out.WriteString(s.listing(pc))
	s.t.Error(out.String())
}

// listing disassembles the code around pc.
func (s *stepped) listing(pc uint64) string {
	var out strings.Builder
	lo := pc - reportedCode
	if b := s.vm.find(pc); b != nil && lo < b.codeBegin {
		lo = b.codeBegin
	}
	code := make([]byte, pc+reportedCode-lo)
	if !s.tr.Memory().Bytes(lo, code) {
		return "  (code cannot be read)\n"
	}
	for start := range min(15, pc-lo+1) {
		text, hit := disassemble(code[start:], lo+start, pc)
		if hit {
			out.WriteString(text)
			break
		}
	}
	return out.String()
}

// disassemble lists code at the address lo, and reports whether an instruction
// begins at pc.
func disassemble(code []byte, lo, pc uint64) (text string, hit bool) {
	var out strings.Builder
	for at := lo; at < lo+uint64(len(code)); {
		rest := code[at-lo:]
		inst, err := x86asm.Decode(rest, 64)
		n, line := 1, "?"
		if err == nil {
			n, line = inst.Len, x86asm.IntelSyntax(inst, at, nil)
		}
		mark := "  "
		if at == pc {
			hit, mark = true, "=>"
		}
		fmt.Fprintf(&out, "%s %#x  % -30x %s\n", mark, at, rest[:n], line)
		at += uint64(n)
	}
	return out.String(), hit
}
