package hotspot

import (
	"github.com/candid-profiler/candid/internal/native"
)

// byDepth finds the caller of a compiled method that was stopped in its body, from how its code has
// moved the stack pointer since its frame was made. p is what the bytes around the program counter
// say. If they say that the frame is as it was made, p is better: it knows about entries in the
// middle of the code and about tail jumps.
func (l *leaf) byDepth(p spot) (f found, ok bool) {
	d := l.vm.depth(l.b, l.pc)
	end := l.sp + l.fs
	switch d.Kind {
	case native.DepthUnknown:
		if p != inBuilt {
			return f, false
		}
		by := l.vm.pushed(l.b, l.pc)
		if by == 0 {
			return f, false
		}
		end += by
	case native.DepthBytes:
		if d.Bytes == 0 && p != inBuilt {
			return f, false
		}
		end += uint64(int64(d.Bytes))
	case native.DepthOnStack:
		old, known := l.c.Word(l.sp + uint64(int64(d.Bytes)))
		if !known || old <= l.sp || old-l.sp > maxFrame {
			return f, false
		}
		end = old + uint64(int64(d.Less)) + l.fs
	case native.DepthInRegister:
		old := l.c.Regs.R[d.Reg]
		if l.c.Regs.Known&(1<<d.Reg) == 0 || old < l.sp || old-l.sp > maxFrame {
			return f, false
		}
		end = old + uint64(int64(d.Less)) + l.fs
	}
	if end < l.sp+8 || end-l.sp > 2*maxFrame || end&7 != 0 {
		return f, false
	}
	f = found{sp: end, fp: l.fp}
	if f.ra, ok = l.c.Word(end - 8); !ok || !l.returns(f.ra) {
		return f, false
	}
	// Below the return address lies the caller's rbp, unless it was popped.
	if end-8 > l.sp {
		if f.fp, ok = l.c.Word(end - 16); !ok {
			return f, false
		}
		f.saved = true
	}
	return f, true
}
