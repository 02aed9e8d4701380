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
	var end uint64
	switch {
	case d.Kind == native.DepthUnknown:
		if p != inBuilt {
			return f, false
		}
		by := l.vm.pushed(l.b, l.pc)
		if by == 0 {
			return f, false
		}
		end = l.sp + by + l.fs
	case d.Kind == native.DepthBytes && d.Bytes == 0 && p != inBuilt:
		return f, false
	default:
		if end, ok = l.unpushed(d); !ok {
			return f, false
		}
		end += l.fs
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

// unpushed returns the stack pointer as it was before the code pushed anything, by its depth.
func (l *leaf) unpushed(d native.Depth) (uint64, bool) {
	switch d.Kind {
	case native.DepthBytes:
		return l.sp + uint64(int64(d.Bytes)), true
	case native.DepthOnStack:
		old, known := l.c.Word(l.sp + uint64(int64(d.Bytes)))
		return old + uint64(int64(d.Less)), known && old > l.sp && old-l.sp <= maxFrame
	case native.DepthInRegister:
		old := l.c.Regs.R[d.Reg]
		return old + uint64(int64(d.Less)), l.c.Regs.Known&(1<<d.Reg) != 0 && old >= l.sp && old-l.sp <= maxFrame
	}
	return 0, false
}

// barrier finds the caller of a c2i adapter that has pushed registers for a collector's barrier,
// which loads the holder of its method (c2i_entry_barrier, since JDK 15). The room for them holds
// whatever was there before, old return addresses too.
func (l *leaf) barrier() (found, bool) {
	if l.extended() || l.aligning() {
		return found{}, false
	}
	d := l.vm.depth(l.b, l.pc)
	if d.Kind == native.DepthUnknown || d.Kind == native.DepthBytes && d.Bytes <= 0 {
		return found{}, false
	}
	at, ok := l.unpushed(d)
	if !ok || at <= l.sp || at-l.sp > maxStubFrame || at&7 != 0 {
		return found{}, false
	}
	ra, ok := l.c.Word(at)
	return found{ra: ra, sp: at + 8, fp: l.fp}, ok && l.vm.validRA(ra)
}
