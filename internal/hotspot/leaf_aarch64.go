package hotspot

import "github.com/candid-profiler/candid/internal/cpu"

// Instructions of AArch64 that build and remove frames (docs/hotspot.md, "The innermost frame";
// from the sources of 8 to 25, macroAssembler_aarch64.cpp).
const (
	a64StpFpLrPre = 0xA9BF7BFD // stp x29,x30,[sp,#-16]!
	a64LdpFpLrPst = 0xA8C17BFD // ldp x29,x30,[sp],#16
	a64Ret        = 0xD65F03C0
	a64MovFpSp    = 0x910003FD // mov x29,sp
	a64Breadcrumb = 0xA9BF27FF // stp xzr,x9,[sp,#-16]!
	a64BlrX8      = 0xD63F0100
)

func a64IsSubSP(w uint32) bool  { return w&0xFF8003FF == 0xD10003FF } // sub sp,sp,#imm
func a64IsAddSP(w uint32) bool  { return w&0xFF8003FF == 0x910003FF } // add sp,sp,#imm
func a64IsSubReg(w uint32) bool { return w&0xFFE0FFFF == 0xCB2063FF } // sub sp,sp,xN
func a64IsStpPair(w uint32) bool {
	return w&0xFFC07FFF == 0xA9007BFD // stp x29,x30,[sp,#imm]
}
func a64IsLdpPair(w uint32) bool {
	return w&0xFFC07FFF == 0xA9407BFD // ldp x29,x30,[sp,#imm]
}

func a64Imm12(w uint32) uint64 {
	v := uint64(w>>10) & 0xFFF
	if w>>22&1 != 0 {
		v <<= 12
	}
	return v
}

// maxPrologue is how many instructions from the entry on may build the frame:
// the stack bang and the class initialisation barrier come before it.
const maxPrologue = 40

// insn is the instruction at a byte offset in the leaf's code, 0 outside.
func (l *leaf) insn(off int) uint32 {
	if off < 0 || off+4 > len(l.code) {
		return 0
	}
	c := l.code[off : off+4]
	return uint32(c[0]) | uint32(c[1])<<8 | uint32(c[2])<<16 | uint32(c[3])<<24
}

// inLink returns the caller of a leaf without a frame: the return address is in x30.
func (l *leaf) inLink() (found, bool) {
	return found{ra: l.c.Regs.R[cpu.X30], sp: l.sp, fp: l.fp}, true
}

// fromPair reads the caller from the stored pair x29, x30 at addr.
func (l *leaf) fromPair(addr, sp uint64) (found, bool) {
	fp, ok1 := l.c.Word(addr)
	ra, ok2 := l.c.Word(addr + 8)
	return found{ra: ra, sp: sp, fp: fp, saved: true}, ok1 && ok2
}

// callerAArch64 finds the caller of a leaf on AArch64. It follows the few instructions that can
// have built the frame up to pc, and checks whether the next ones are the rest of an epilogue.
func (l *leaf) callerAArch64() (found, bool) {
	switch l.b.kind {
	case blobNMethod, blobNativeMethod, blobRuntimeStub, blobSafepoint, blobException, blobDeopt, blobUncommonTrap:
	default:
		return l.stubAArch64()
	}
	if l.fs < 16 {
		return l.stubAArch64()
	}
	if l.removed() {
		return l.inLink()
	}
	if l.b.kind != blobNMethod || l.pc < l.b.frameComplete {
		if f, ok, done := l.buildingAArch64(); done {
			return f, ok
		}
	}
	f, ok := l.fromPair(l.sp+l.fs-16, l.sp+l.fs)
	if ok && l.returns(f.ra) {
		return f, true
	}
	if g, found := l.search(l.sp, (*VM).validRA); found {
		return g, true
	}
	return f, ok && l.vm.codeRA(stripPC(l.c, f.ra))
}

// buildingAArch64 follows the prologue from its start to pc. done is false if the frame is
// complete.
func (l *leaf) buildingAArch64() (f found, ok, done bool) {
	start := 0
	if l.b.nm != nil && l.b.nm.verifiedEntry >= l.b.codeBegin && l.b.nm.verifiedEntry <= l.pc {
		start = int(l.b.nm.verifiedEntry - l.b.codeBegin)
	} else if l.b.nm != nil && l.pc < l.b.nm.verifiedEntry {
		f, ok = l.inLink()
		return f, ok, true
	}
	var moved uint64 // bytes subtracted from sp
	var stored bool
	var at uint64 // of the pair, from the sp at entry downwards
	for i, off := 0, start; i < maxPrologue && off < l.off; i, off = i+1, off+4 {
		w := l.insn(off)
		switch {
		case w == a64StpFpLrPre:
			moved, stored = moved+16, true
			at = moved
		case a64IsStpPair(w):
			stored = true
			at = moved - uint64(int64(int32(w<<10)>>25))*8
		case a64IsSubSP(w):
			moved += a64Imm12(w)
		case a64IsSubReg(w):
			moved = l.fs
		}
		if stored && moved >= l.fs {
			return found{}, false, false
		}
	}
	if moved > l.fs || at > l.fs {
		return found{}, false, false
	}
	entry := l.sp + moved
	if !stored {
		f, ok = l.inLink()
		f.sp = entry
		return f, ok, true
	}
	f, ok = l.fromPair(entry-at, entry)
	return f, ok, true
}

// removed reports whether the frame has been taken off already: only an optional poll and the
// return follow, and nothing of the frame's removal.
func (l *leaf) removed() bool {
	if l.insn(l.off) == a64Ret {
		return true
	}
	before := l.insn(l.off - 4)
	gone := before == a64LdpFpLrPst || a64IsAddSP(before) && a64IsLdpPair(l.insn(l.off-8))
	if gone {
		return true
	}
	for i := 1; i <= 6; i++ {
		w := l.insn(l.off - 4*i)
		if w == a64LdpFpLrPst || a64IsAddSP(w) && a64IsLdpPair(l.insn(l.off-4*i-4)) {
			// Only the poll lies between the removal and the return.
			for j := range 6 {
				if l.insn(l.off+4*j) == a64Ret {
					return true
				}
			}
			return false
		}
	}
	return false
}

// stubAArch64 finds the caller of code without a published frame: through x29 if the code has
// stored the link register, else in x30.
func (l *leaf) stubAArch64() (found, bool) {
	for i := 1; i <= 64 && l.off-4*i >= 0; i++ {
		w := l.insn(l.off - 4*i)
		if w == a64Ret || w == a64LdpFpLrPst {
			break
		}
		if w == a64StpFpLrPre {
			if l.fp >= l.sp && l.fp-l.sp < 512 {
				return l.fromPair(l.fp, l.fp+16)
			}
			return l.fromPair(l.sp, l.sp+16)
		}
	}
	return l.inLink()
}
