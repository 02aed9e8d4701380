package hotspot

import (
	"bytes"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// This file finds the return address and the caller's rbp of x86-64 code in which a thread was
// stopped at any instruction, by the bytes around the program counter. All rules were found and
// proved by single-stepping threads (docs/hotspot.md, "The innermost frame"); the oracle tests
// repeat that.

// base is what a spot's offsets count from.
type base uint8

const (
	inSP        base = iota // rsp
	inFrame                 // rsp plus the frame's size
	inFP                    // rbp
	inRAX                   // the return address is in a register, not on the stack
	inRDX                   // the same
	inRCX                   // the same
	inException             // it is JavaThread._saved_exception_pc
)

// keepFP says that the caller's rbp is still in rbp.
const keepFP = -128

// spot says where the return address and the caller's rbp are, in bytes from a base.
type spot struct {
	base base
	ra   int8
	fp   int8
}

// The spots that occur.
var (
	onTop       = spot{inSP, 0, keepFP}     // no frame: not built yet, or gone again
	underSaved  = spot{inSP, 8, 0}          // rbp was pushed and is on top
	underOther  = spot{inSP, 8, keepFP}     // something else is on top
	inBuilt     = spot{inFrame, -8, -16}    // the whole frame
	inSubbed    = spot{inFrame, -8, keepFP} // the whole frame, rbp not stored yet
	inPushed    = spot{inFrame, 0, -8}      // the whole frame and one word more
	byFP        = spot{inFP, 8, 0}
	inRAXPlace  = spot{inRAX, 0, keepFP}
	inRDXPlace  = spot{inRDX, 0, keepFP}
	inRCXPlace  = spot{inRCX, 0, keepFP}
	atException = spot{inException, 0, keepFP}
)

// leafRule yields the spot if the code around pc matches and when holds.
type leafRule struct {
	before, at pattern
	when       func(*leaf) bool
	place      spot
}

// leaf is a stopped frame.
type leaf struct {
	vm   *VM
	c    *walk.Cursor
	b    *blob
	code []byte // of the blob
	off  int    // of pc in code
	pc   uint64
	sp   uint64
	fp   uint64
	fs   uint64

	uncopied bool // its callers are a virtual thread's and were not copied
	guessed  bool // the caller is the next word that may be a return address
}

// known reports whether the code around pc could be read.
func (l *leaf) known() bool { return l.off <= len(l.code) }

// moves reports whether push rbp; mov rbp,rsp was just executed. Small frames also move rsp into
// rbp, but after sub rsp.
func (l *leaf) moves() bool { return l.fp == l.sp && movRBP.before(l.code, l.off) }

// entering reports whether pc is before the place where, according to the blob, the frame is
// complete.
func (l *leaf) entering() bool {
	return l.pc < l.b.frameComplete && l.b.frameComplete < l.b.codeEnd
}

var (
	movRBP   = pat("55 48 8B EC")
	pushMove = []byte{0x55, 0x48, 0x8B, 0xEC}
	subImm8  = []byte{0x48, 0x83, 0xEC}
	subImm   = []byte{0x48, 0x81, 0xEC}
)

// entered returns how many bytes pc is past the verified entry point, negative if before it.
func (l *leaf) entered() int64 {
	if l.b.nm == nil || l.b.nm.verifiedEntry < l.b.codeBegin {
		return int64(l.off)
	}
	return int64(l.pc - l.b.nm.verifiedEntry)
}

// subbed returns where in code the prologue's sub rsp that was executed ends, or 0.
func (l *leaf) subbed() int {
	n := l.entered()
	if n <= 0 || n > int64(l.off) || !l.known() {
		return 0
	}
	ran := l.code[l.off-int(n) : l.off]
	i := bytes.Index(ran, subImm)
	size := 7
	if j := bytes.Index(ran, subImm8); j >= 0 && (i < 0 || j < i) {
		i, size = j, 4
	}
	if i < 0 || i+size > len(ran) {
		return 0
	}
	return l.off - int(n) + i + size
}

// prologueRules apply from the entry points to the place where the frame is complete.
var prologueRules = []leafRule{
	{when: func(l *leaf) bool { return l.entered() <= 0 }, place: onTop},
	{at: pat("55"), place: onTop},
	{before: pat("55"), when: func(l *leaf) bool { return l.entered() <= 15 }, place: underSaved},
	// Small frames are made by sub rsp, then mov [rsp+fs-16],rbp: between the two, the caller's rbp
	// is only in rbp.
	{at: pat("48 89 6C 24"), when: func(l *leaf) bool { return l.subbed() == l.off }, place: inSubbed},
	{at: pat("48 89 AC 24"), when: func(l *leaf) bool { return l.subbed() == l.off }, place: inSubbed},
	{when: func(l *leaf) bool { return l.subbed() > 0 }, place: inBuilt},
	{when: (*leaf).moves, place: underSaved},
	{place: onTop},
}

// bodyRules apply from the place where the frame is complete; the first that matches wins.
var bodyRules = []leafRule{
	// The entry for on-stack replacement lies after the published end of the prologue: stack bang,
	// push rbp, sub rsp.
	{at: pat("89 84 24 ?? ?? ?? ?? 55"), place: onTop},
	{before: pat("89 84 24 ?? ?? ?? ??"), at: pat("55"), place: onTop},
	{before: pat("89 84 24 ?? ?? ?? ?? 55"), place: underSaved},
	{at: pat("C3"), place: onTop},
	{at: pat("5D"), place: underSaved},
	// Tail jumps after the frame was popped: the rethrow stub, and so on.
	{before: pat("5D"), at: pat("E9"), place: onTop},
	{before: pat("5D"), at: pat("FF E0"), place: onTop},
	{before: pat("5D"), at: pat("41 FF E2"), place: onTop},
	{before: pat("5D"), at: pat("41 FF E3"), place: onTop},
	// The return poll: cmp rsp,[r15+x]; ja stub; ret from 17 on.
	{before: pat("5D"), at: pat("49 3B 67"), place: onTop},
	{before: pat("5D"), at: pat("49 3B A7"), place: onTop},
	{at: pat("0F 87 ?? ?? ?? ?? C3"), place: onTop},
	// mov r10,[r15+x]; test [r10],eax; ret in 11.
	{before: pat("5D"), at: pat("4D 8B 97"), place: onTop},
	{before: pat("5D"), at: pat("4D 8B 57"), place: onTop},
	{at: pat("41 85 02 C3"), place: onTop},
	// test [rip+x],eax; ret in 8 and in 11 without thread-local handshakes.
	{at: pat("85 05 ?? ?? ?? ?? C3"), place: onTop},
	// The return poll's stub: mov r10,pc (or lea); mov [r15+x],r10; jmp.
	{at: pat("49 BA ?? ?? ?? ?? ?? ?? ?? ?? 4D 89 97 ?? ?? ?? ?? E9"), place: onTop},
	{at: pat("4C 8D 15 ?? ?? ?? ?? 4D 89 97 ?? ?? ?? ?? E9"), place: onTop},
	{before: pat("49 BA ?? ?? ?? ?? ?? ?? ?? ??"), at: pat("4D 89 97 ?? ?? ?? ?? E9"), place: onTop},
	{before: pat("4C 8D 15 ?? ?? ?? ??"), at: pat("4D 89 97 ?? ?? ?? ?? E9"), place: onTop},
	{before: pat("49 BA ?? ?? ?? ?? ?? ?? ?? ?? 4D 89 97 ?? ?? ?? ??"), at: pat("E9"), place: onTop},
	{before: pat("4C 8D 15 ?? ?? ?? ?? 4D 89 97 ?? ?? ?? ??"), at: pat("E9"), place: onTop},
	// pop [mem], the second half of C2's memory to memory move.
	{at: pat("8F"), place: inPushed},
	{at: pat("48 8F"), place: inPushed},
	// Static call stubs: mov rbx,method; jmp.
	{at: pat("48 BB ?? ?? ?? ?? ?? ?? ?? ?? E9"), when: (*leaf).inStubs, place: onTop},
	{before: pat("48 BB ?? ?? ?? ?? ?? ?? ?? ??"), at: pat("E9"), when: (*leaf).inStubs, place: onTop},
	// The deopt handler calls its next instruction to get its own address.
	{at: pat("48 83 2C 24"), when: (*leaf).inStubs, place: inPushed},
	{before: pat("48 83 2C 24 ??"), at: pat("E9"), when: (*leaf).inStubs, place: inPushed},
	{place: inBuilt},
}

// staticCall is a compiled method's stub for a call of an interpreted method: mov rbx,method; jmp.
var staticCall = pat("48 BB ?? ?? ?? ?? ?? ?? ?? ?? E9")

// inStaticCall reports whether the leaf is in such a stub. The return address is then that of a
// call in the same code: the method itself has not been called again.
func (l *leaf) inStaticCall() bool {
	return l.c.Regs.Arch == cpu.AMD64 && l.b.kind == blobNMethod && l.inStubs() && (staticCall.at(l.code, l.off) || staticCall.at(l.code, l.off-10))
}

func (l *leaf) inStubs() bool { return l.b.nm != nil && l.pc >= l.b.nm.stubBegin }

// codeAt reports whether the word at addr is a return address into generated code.
func (l *leaf) codeAt(addr uint64) bool {
	w, ok := l.c.Word(addr)
	return ok && l.vm.codeRA(w)
}

// match returns the spot of the first rule that matches.
func (l *leaf) match(rules []leafRule) (spot, bool) {
	for i := range rules {
		r := &rules[i]
		if r.at.at(l.code, l.off) && r.before.before(l.code, l.off) && (r.when == nil || r.when(l)) {
			return r.place, true
		}
	}
	return spot{}, false
}

// readable reports whether reading the code is the best way to find the caller. It is in hand-made
// stubs, except where they jump instead of returning (jumpRules), and except the call stub and
// entry barriers, whose rules know more.
func (l *leaf) readable() bool {
	switch l.b.kind {
	case blobStubRoutines:
		if l.vm.inCallStub(l.b, l.pc) || l.vm.inBarrier(l.b, l.pc) {
			return false
		}
	case blobOther:
		if l.b.frameless() {
			return false
		}
	case blobContinuation:
	case blobNativeMethod:
		// Intrinsics of method handles have no frame and jump to what they find.
		if l.fs != 0 {
			return false
		}
	case blobRuntimeStub:
		// C1's allocation stubs first try without a frame.
		if l.fs >= 16 && (!l.known() || l.off > bytes.Index(l.code, pushMove)) {
			return false
		}
	default:
		return false
	}
	_, jumps := l.match(jumpRules)
	return !jumps
}

// rulesX86 chooses the rules for a leaf on x86-64.
func (l *leaf) rulesX86() []leafRule {
	switch l.b.kind {
	case blobNMethod:
		if l.pc < l.b.frameComplete && !l.inStubs() {
			return prologueRules
		}
		return bodyRules
	case blobNativeMethod:
		return wrapperRules
	case blobSafepoint:
		return safepointRules
	case blobAdapter:
		return adapterRules
	case blobVtable, blobMethodHandles:
		return framelessRules
	case blobOther:
		if l.b.frameless() {
			return framelessRules
		}
	case blobStubRoutines:
		if l.vm.inCallStub(l.b, l.pc) {
			return callStubRules
		}
		if l.vm.inBarrier(l.b, l.pc) {
			return barrierRules
		}
	case blobRuntimeStub, blobDeopt, blobUncommonTrap, blobException:
		if l.fs >= 16 {
			return runtimeRules
		}
	}
	return stubRules
}

// found is where a leaf's caller continues.
type found struct {
	ra, sp, fp uint64
	own        uint64 // the caller's own stack pointer, if its callee has put arguments below it
	saved      bool   // fp was read from the stack
}

// read loads the return address and the caller's registers from a spot.
func (l *leaf) read(p spot) (f found, ok bool) {
	var at uint64
	f.fp = l.fp
	switch p.base {
	case inSP:
		at = l.sp
	case inFrame:
		at = l.sp + l.fs
	case inFP:
		at = l.fp
	case inRAX:
		f.ra, f.sp = l.c.Regs.R[cpu.RAX], l.sp
		return f, true
	case inRDX:
		f.ra, f.sp = l.c.Regs.R[cpu.RDX], l.sp
		return f, true
	case inRCX:
		f.ra, f.sp = l.c.Regs.R[cpu.RCX], l.sp
		return f, true
	case inException:
		f.ra, ok = l.vm.savedExceptionPC(l.c.TID)
		f.sp = l.sp
		return f, ok
	}
	if f.ra, ok = l.c.Word(at + uint64(int64(p.ra))); !ok {
		return f, false
	}
	if p.fp != keepFP {
		if f.fp, ok = l.c.Word(at + uint64(int64(p.fp))); !ok {
			return f, false
		}
		f.saved = true
	}
	f.sp = at + uint64(int64(p.ra)) + 8
	return f, true
}

// callerX86 finds the caller of a leaf on x86-64.
func (l *leaf) callerX86() (found, bool) {
	if l.b.kind == blobException {
		if p, ok := l.match(exceptionRules); ok {
			return l.read(p)
		}
	}
	if f, ok := l.excepted(); ok {
		return f, true
	}
	switch l.b.kind {
	case blobDeopt, blobUncommonTrap:
		if f, ok := l.rebuilding(); ok {
			return f, true
		}
	}
	p, ok := l.match(l.rulesX86())
	if !ok {
		return found{}, false
	}
	if l.b.kind == blobAdapter && p == onTop && !l.patching() {
		if f, ok := l.barrier(); ok {
			return f, true
		}
	}
	if l.b.kind == blobAdapter && p == onTop && (l.patching() || !l.vm.validRA(l.top())) {
		// The word on top may be an old return address.
		if r13 := l.c.Regs.R[cpu.R13]; r13 >= l.sp && r13-l.sp < maxStubFrame && r13&7 == 0 {
			if ra, ok := l.c.Word(r13); ok && l.vm.validRA(ra) {
				return found{ra: ra, sp: r13 + 8, fp: l.fp}, true
			}
		}
	}
	if l.b.kind == blobNMethod {
		if f, ok := l.byDepth(p); ok {
			return f, true
		}
	}
	f, ok := l.read(p)
	if ok && l.returns(f.ra) {
		return f, true
	}
	switch l.b.kind {
	case blobSafepoint:
		// A loop's poll makes the slot first and fills it later.
		if g, ok2 := l.read(atException); ok2 && l.vm.codeRA(g.ra) {
			g.sp, g.fp = f.sp, f.fp
			return g, ok
		}
	case blobAdapter, blobVtable, blobMethodHandles:
		// Adapters carry the return address through rax for a few instructions.
		if rax := l.c.Regs.R[cpu.RAX]; l.vm.validRA(rax) {
			return l.read(inRAXPlace)
		}
	}
	from := l.sp
	if p.base == inFrame && l.b.kind == blobNMethod {
		if g, found := l.pushedAll(); found {
			return g, true
		}
		from = l.sp + l.fs - 8
	}
	if g, found := l.search(from, (*VM).validRA); found {
		l.guessed = true
		return g, true
	}
	return f, ok && l.vm.codeRA(f.ra)
}
