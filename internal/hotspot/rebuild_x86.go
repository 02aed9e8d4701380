package hotspot

import (
	"bytes"

	"github.com/candid-profiler/candid/internal/cpu"
)

// A compiled frame that is deoptimised is replaced by interpreted ones in its place
// (generate_deopt_blob and generate_uncommon_trap_blob in
// cpu/x86/{sharedRuntime,runtime}_x86_64.cpp): add rsp,rcx takes it off, then a loop makes the new
// frames, still empty, the outermost first, and finally the blob makes a frame for itself to call
// the code that fills them in. In between, the thread has no frame of a known size, but rdi points
// at the VM's description of the new frames.

// Deoptimization::UnrollBlock, the same in all releases (runtime/deoptimization.hpp).
const (
	unrollAdjustment = 4  // int32: by how much the caller's frame is extended, bytes
	unrollTotal      = 12 // int32: bytes of the new frames
	unrollPCs        = 24 // pointer to their return addresses: the first is the caller's
	unrollCallerFP   = 48
)

// maxRebuilt bounds the frames that replace one compiled frame, in bytes.
const maxRebuilt = 1 << 20

// rebuilding finds the caller of the frame that is being replaced, if the thread is between those
// two places of such a blob.
func (l *leaf) rebuilding() (f found, ok bool) {
	if !l.betweenFrames() {
		return f, false
	}
	block := l.c.Regs.R[cpu.RDI]
	pcs, ok1 := l.vm.Mem.U64(block + unrollPCs)
	ra, ok2 := l.vm.Mem.U64(pcs)
	sizes, ok3 := l.vm.Mem.U64(block + unrollTotal - 4)
	adjust, ok4 := l.vm.Mem.U64(block)
	fp, ok5 := l.vm.Mem.U64(block + unrollCallerFP)
	total, longer := sizes>>32, adjust>>32
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || total > maxRebuilt || longer > maxLocals || longer&7 != 0 || !l.vm.validRA(ra) {
		return f, false
	}
	if at, ok := l.outermost(fp, total); ok {
		return l.replaced(at, ra, fp, longer)
	}
	// No new frame is there yet. The return address lies where it was, which is just below the
	// stack pointer for a while, or lower by the number of bytes by which the caller's frame is
	// extended, or it has just been pushed.
	at := l.sp - 8
	if push := bytes.Index(l.code, pushAtRCX); push >= 0 && l.off >= push+len(pushAtRCX) {
		at = l.sp
	}
	for ; at <= l.sp+8+longer; at += 8 {
		w, ok := l.c.Word(at)
		if !ok {
			return f, false
		}
		if w == ra {
			return l.replaced(at, ra, fp, longer)
		}
	}
	return f, false
}

// outermost returns where the return address of the outermost new frame lies. The frame pointers of
// that frame and of the frames inside it lead there. Everything else in the new frames is left over
// from others.
func (l *leaf) outermost(callerFP, total uint64) (at uint64, ok bool) {
	for fp := l.fp; fp != callerFP && fp >= l.sp && fp-l.sp <= total && fp&7 == 0; {
		next, ok := l.c.Word(fp)
		switch {
		case !ok || next != callerFP && next <= fp:
			return 0, false
		case next == callerFP:
			return fp + 8, true
		}
		fp = next
	}
	return 0, false
}

// replaced returns the caller of the frame that is being replaced, whose return address is at at.
func (l *leaf) replaced(at, ra, fp, longer uint64) (f found, ok bool) {
	if w, ok := l.c.Word(at); !ok || w != ra {
		return f, false
	}
	f = found{ra: ra, sp: max(at+8, l.sp), fp: fp, saved: true}
	if old, ok := l.c.Word(at + longer); ok && longer != 0 && old == ra {
		f.own = at + longer + 8
	}
	return f, true
}

// betweenFrames reports whether pc lies after add rsp,rcx and before the sub rsp of the blob's new
// frame.
func (l *leaf) betweenFrames() bool {
	i := bytes.Index(l.code, []byte{0x48, 0x03, 0xE1})
	if i < 0 || l.off < i+3 {
		return false
	}
	for k := i + 3; ; {
		n := bytes.Index(l.code[k:], movRBPRSP)
		if n < 0 {
			return false
		}
		k += n + len(movRBPRSP)
		if rest := l.code[k:]; bytes.HasPrefix(rest, subImm) || bytes.HasPrefix(rest, subImm8) {
			return l.off <= k
		}
	}
}

var (
	movRBPRSP = []byte{0x48, 0x8B, 0xEC}
	pushAtRCX = []byte{0xFF, 0x31} // push [rcx], of the next return address
)
