package hotspot

import (
	"bytes"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// extendStack is where a c2i adapter saves its caller's stack pointer: pop rax; mov r13,rsp, or lea
// r13,[rsp+8]; pop rax. It then makes room, and puts the return address there.
var extendStack = [...][]byte{{0x58, 0x4C, 0x8B, 0xEC}, {0x4C, 0x8D, 0x6C, 0x24, 0x08, 0x58}}

// extended reports whether an adapter may have made room for the interpreter's arguments: the
// register holds the stack pointer only after that place.
func (l *leaf) extended() bool {
	if l.c.Regs.Arch != cpu.AMD64 {
		return true
	}
	for _, e := range extendStack {
		if i := bytes.LastIndex(l.code, e); i >= 0 && l.off >= i+len(e) {
			return true
		}
	}
	return false
}

// top returns the word at the stack pointer.
func (l *leaf) top() uint64 {
	w, _ := l.c.Word(l.sp)
	return w
}

// maxPushed is how many words above rsp the registers that a math intrinsic saved may begin: all
// general and all 512-bit vector registers.
const maxPushed = 320

// pushedAll finds the frame of code that has saved all registers on the stack, as C2's pow, exp and
// others do around a call up to JDK 8: mov [rsp-40],rsp; sub rsp,128. The saved stack pointer lies
// 40 bytes below the address that it holds.
func (l *leaf) pushedAll() (found, bool) {
	for i := range uint64(maxPushed) {
		at := l.sp + 8*i
		w, ok := l.c.Word(at)
		if !ok {
			break
		}
		if w != at+40 {
			continue
		}
		inner := *l
		inner.sp = w
		if f, ok := inner.read(inBuilt); ok && l.vm.validRA(f.ra) {
			l.vm.stepping.prov = walk.Derived
			return f, true
		}
	}
	return found{}, false
}

var (
	pollStubs = []struct {
		code pattern
		imm  int // where the poll's pc is: 8 bytes absolute, or 4 relative to the next instruction
		rel  bool
		size int
	}{
		{pat("49 BA ?? ?? ?? ?? ?? ?? ?? ?? 4D 89 97 ?? ?? ?? ?? E9"), 2, false, 10},
		{pat("4C 8D 15 ?? ?? ?? ?? 4D 89 97 ?? ?? ?? ?? E9"), 3, true, 7},
	}
	pollSecond = 7 // bytes of mov [r15+x],r10
)

// polled returns the pc of the poll that jumped to the stub the leaf is in.
func (l *leaf) polled() (uint64, bool) {
	if l.c.Regs.Arch != cpu.AMD64 {
		return 0, false
	}
	for i := range pollStubs {
		p := &pollStubs[i]
		for _, back := range [3]int{0, p.size, p.size + pollSecond} {
			off := l.off - back
			if off < 0 || !p.code.at(l.code, off) {
				continue
			}
			var v uint64
			n := 8
			if p.rel {
				n = 4
			}
			for k := n - 1; k >= 0; k-- {
				v = v<<8 | uint64(l.code[off+p.imm+k])
			}
			if p.rel {
				v = uint64(int64(int32(v))) + l.b.codeBegin + uint64(off+p.size)
			}
			if l.b.contains(v) {
				return v, true
			}
		}
	}
	return 0, false
}
