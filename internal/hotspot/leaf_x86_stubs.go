package hotspot

import (
	"bytes"
	"slices"
	"strings"
)

// This file holds the rules for code that is not a compiled Java method: wrappers of native
// methods, runtime stubs, polls, adapters and hand-made stubs.

// wrapperRules apply to the compiled wrappers of native methods.
var wrapperRules = []leafRule{
	// If the code tells, it decides: the caller's rbp may by chance be exactly where the wrapper's
	// would be (PreserveFramePointer makes that likely).
	{before: pat("55"), when: (*leaf).entering, place: underSaved},
	{before: pat("55 48 8B EC"), when: (*leaf).entering, place: underSaved},
	{when: func(l *leaf) bool { return l.entering() && l.known() && !bytes.Contains(l.code[:l.off], pushMove) }, place: onTop},
	// leave; cmp [r15+pending_exception],0; jne; ret; jmp forward_exception.
	{at: pat("C3"), place: onTop},
	{at: pat("0F 85 ?? ?? ?? ?? C3"), place: onTop},
	{before: pat("C9"), at: pat("49 81 7F ?? ?? ?? ?? ?? 0F 85 ?? ?? ?? ?? C3"), place: onTop},
	{before: pat("C9"), at: pat("49 83 7F ?? ?? 0F 85 ?? ?? ?? ?? C3"), place: onTop},
	{before: pat("0F 85 ?? ?? ?? ?? C3"), at: pat("E9"), place: onTop},
	{when: (*leaf).pollsLeft, place: onTop},
	{when: func(l *leaf) bool { return l.fp == l.sp+l.fs-16 }, place: inBuilt},
	{before: pat("55"), place: underSaved},
	{when: (*leaf).moves, place: underSaved},
	{at: pat("C9"), place: byFP},
	{when: func(l *leaf) bool {
		return l.pc < l.b.frameComplete || l.fp <= l.sp || l.fp > l.sp+l.fs-16
	}, place: onTop},
	{place: byFP},
}

// pollsLeft reports whether a wrapper has removed its frame before it polls for its return (25+):
// leave; test byte [r15+n],1; je; mov r10,pc; mov [r15+saved],r10; jmp; cmp
// [r15+pending_exception],0; jne; ret; jmp.
func (l *leaf) pollsLeft() bool {
	if !l.known() {
		return false
	}
	for i := l.off - 1; i >= max(0, l.off-48); i-- {
		if leftAndPolls.at(l.code, i) {
			return true
		}
	}
	return false
}

var leftAndPolls = pat("C9 41 F6 47 ?? 01 74")

// runtimeRules apply to the stubs through which compiled code calls the VM.
var runtimeRules = []leafRule{
	{at: pat("48 8F"), place: inPushed},
	{at: pat("8F"), place: inPushed},
	{at: pat("C9"), place: byFP},
	{at: pat("C3"), place: onTop},
	{at: pat("5D"), place: underSaved},
	{before: pat("5D"), at: pat("E9"), place: onTop},
	{before: pat("5D"), at: pat("FF E0"), place: onTop},
	{before: pat("5D"), at: pat("41 FF"), place: onTop},
	// A pending exception is forwarded with the frame gone: mov [r15+result],0;
	// mov rax,[r15+exception]; jmp.
	{before: pat("5D"), at: pat("49 C7 87"), place: onTop},
	{before: pat("5D 49 C7 87 ?? ?? ?? ?? ?? ?? ?? ??"), at: pat("49 8B 47"), place: onTop},
	{before: pat("5D 49 C7 87 ?? ?? ?? ?? ?? ?? ?? ?? 49 8B 47 ??"), at: pat("E9"), place: onTop},
	// The rethrow stub pops its return address: pop rbp; pop rdx; jmp r10, or r11.
	{before: pat("5D"), at: pat("5A"), place: onTop},
	{before: pat("5D 5A"), at: pat("41 FF"), place: inRDXPlace},
	// C1's handle_exception_from_callee: leave; pop rcx; jmp rcx.
	{before: pat("C9"), at: pat("59"), place: onTop},
	{before: pat("C9 59"), at: pat("FF E1"), place: inRCXPlace},
	{before: pat("C9"), at: pat("E9"), place: onTop},
	{before: pat("C9"), at: pat("FF"), place: onTop},
	{at: pat("55"), when: func(l *leaf) bool { return l.off < 16 }, place: onTop},
	{before: pat("55"), when: func(l *leaf) bool { return l.off <= 16 }, place: underSaved},
	{when: func(l *leaf) bool { return l.off <= 24 && l.moves() }, place: underSaved},
	// C1's stubs begin with a frame on rbp and move rsp within it.
	{when: func(l *leaf) bool { return l.off >= 4 && callStubEntry.at(l.code, 0) }, place: byFP},
	// Some are jumped to by others that have already made the frame.
	{when: func(l *leaf) bool {
		return l.fp > l.sp && l.fp <= l.sp+l.fs-16 && l.codeAt(l.fp+8)
	}, place: byFP},
	{when: func(l *leaf) bool { return l.off == 0 }, place: onTop},
	{place: inBuilt},
}

// exceptionRules apply to the exception blob, which is entered by a jump with the return address in
// rdx.
var exceptionRules = []leafRule{
	{at: pat("52"), when: func(l *leaf) bool { return l.off == 0 }, place: inRDXPlace},
	{before: pat("52"), when: func(l *leaf) bool { return l.off == 1 }, place: onTop},
	// It leaves so too: pop rdx; mov r8,rax; … jmp r8.
	{at: pat("5A 4C 8B C0"), place: onTop},
	{when: func(l *leaf) bool {
		i := bytes.LastIndex(l.code, []byte{0x5A, 0x4C, 0x8B, 0xC0})
		return i >= 0 && l.off > i
	}, place: inRDXPlace},
}

// safepointRules apply to the blobs that polls end up in.
var safepointRules = []leafRule{
	// A loop's poll: its slot for the return address is made by push rbx.
	{at: pat("53 55"), place: atException},
	{at: pat("55"), place: onTop},
	{before: pat("55"), place: underSaved},
	{at: pat("C3"), place: onTop},
	{at: pat("5D"), place: underSaved},
	{when: func(l *leaf) bool { return l.fp >= l.sp && l.fp < l.sp+l.fs+64 }, place: byFP},
	{place: inBuilt},
}

// jumpRules apply to hand-made stubs that have taken their return address off the stack and jump.
var jumpRules = []leafRule{
	// forward_exception: pop rdx; mov rax,[r15+x]; mov [r15+x],0; jmp rbx.
	{before: pat("5A"), at: pat("49 8B 47"), place: inRDXPlace},
	{before: pat("5A 49 8B 47 ??"), at: pat("49 C7 47"), place: inRDXPlace},
	{before: pat("49 C7 47 ?? 00 00 00 00"), at: pat("FF E3"), place: inRDXPlace},
	// unwind_exception of C1: pop rdx; jmp rbx.
	{before: pat("5A"), at: pat("FF E3"), place: inRDXPlace},
	// forward_exception before that pop: it calls C++, with the stack aligned.
	{before: pat("48 83 EC 08"), at: pat("E8"), when: (*leaf).forwards, place: underOther},
	{at: pat("48 83 C4 08"), when: (*leaf).forwards, place: underOther},
	{when: (*leaf).forwards, place: onTop},
}

// forwards reports whether the code from pc on pops its return address into rdx, as
// forward_exception does at its end.
func (l *leaf) forwards() bool {
	const within = 80 // bytes: one call with its alignment
	if !l.known() {
		return false
	}
	rest := l.code[l.off:min(len(l.code), l.off+within)]
	for i := 0; ; i++ {
		n := bytes.Index(rest[i:], forwardPops)
		if n < 0 {
			return false
		}
		if i += n; forwardEnd.at(rest, i) {
			return true
		}
	}
}

var (
	forwardPops = []byte{0x5A, 0x49, 0x8B, 0x47}
	forwardEnd  = pat("5A 49 8B 47 ?? 49 C7 47 ?? 00 00 00 00 FF E3")
)

// stubRules apply to hand-made stubs whose code could not be read. 41 55 is push r13, not push rbp.
var stubRules = slices.Concat(jumpRules, []leafRule{
	{at: pat("55"), when: func(l *leaf) bool { return !pat41.before(l.code, l.off) }, place: onTop},
	{before: pat("55"), when: func(l *leaf) bool { return !pat41.before(l.code, l.off-1) }, place: underSaved},
	{at: pat("C3"), place: onTop},
	{at: pat("C9"), place: byFP},
	// A whole blob on rbp, as the collectors' stubs that save all registers are.
	{when: func(l *leaf) bool {
		return l.b.kind == blobRuntimeStub && l.off >= 4 && callStubEntry.at(l.code, 0) && l.fp >= l.sp && l.fp < l.sp+maxStubFrame
	}, place: byFP},
	{when: (*leaf).onFP, place: byFP},
	// A call of C code without a frame: the stack is aligned first.
	{before: pat("48 83 EC 08"), at: pat("E8"), place: underOther},
	{at: pat("48 83 C4 08"), place: underOther},
	{place: onTop},
})

// onFP reports whether a hand-made stub seems to have its frame on rbp.
func (l *leaf) onFP() bool { return l.fp >= l.sp && l.fp < l.sp+512 && l.codeAt(l.fp+8) }

// barrierRules apply to the nmethod entry barrier's stub, which pushes -1 before it makes its
// frame.
var barrierRules = []leafRule{
	{at: pat("68 FF FF FF FF"), place: onTop},
	{at: pat("55"), place: underOther},
	{before: pat("55"), place: spot{inSP, 16, 0}},
	{at: pat("C3"), place: onTop},
	{at: pat("FF 64 24 F8"), place: onTop},
	{when: func(l *leaf) bool { return l.fp < l.sp || l.fp >= l.sp+maxStubFrame }, place: underOther},
	{before: pat("C9"), place: underOther},
	{before: pat("C9 48 85 24 24"), place: underOther},
	{place: spot{inFP, 16, 0}},
}

// callStubRules apply to the stub through which C++ calls Java. Its return address into libjvm
// tells it from every other stub.
var callStubRules = []leafRule{
	{at: pat("55"), place: onTop},
	{before: pat("55"), place: underSaved},
	{at: pat("C3"), place: onTop},
	{place: byFP},
}

// framelessRules apply to adapters, vtable stubs and inline cache buffers, to the interpreter's
// native signature handlers, which run on its frame pointer, and to JNI's fast field getters: none
// of them leaves anything pushed.
var framelessRules = []leafRule{{place: onTop}}

// adapterRules apply to adapters. They take the return address off the stack while they move what
// lies around it, so the word on top may be an old one.
var adapterRules = []leafRule{
	// To the interpreter: pop rax; mov r13,rsp; sub rsp,n; mov [rsp],rax, or push rax.
	// From 21 on r13 is made first.
	{when: (*leaf).madeRoom, place: inRAXPlace},
	{when: (*leaf).aligning, place: inRAXPlace},
	{place: onTop},
}

// aligning reports whether an adapter from the interpreter holds its return address in rax: mov
// rax,[rsp]; mov r11,rsp, or mov r11,rsp; pop rax from 21 on; sub rsp,n if there are arguments; and
// rsp,-16; push rax.
func (l *leaf) aligning() bool {
	for _, e := range alignStack {
		from := bytes.Index(l.code, e)
		if from < 0 {
			continue
		}
		if from += len(e); l.off < from {
			continue
		}
		for i := from; i < len(l.code); {
			switch rest := l.code[i:]; {
			case rest[0] == 0x50:
				return l.off <= i
			case bytes.HasPrefix(rest, subImm):
				i += 7
			case bytes.HasPrefix(rest, subImm8), bytes.HasPrefix(rest, andRSP):
				i += 4
			default:
				i = len(l.code)
			}
		}
	}
	return false
}

var (
	alignStack = [...][]byte{{0x48, 0x8B, 0x04, 0x24, 0x4C, 0x8B, 0xDC}, {0x4C, 0x8B, 0xDC, 0x58}}
	andRSP     = []byte{0x48, 0x83, 0xE4, 0xF0}
)

// patching reports whether a c2i adapter is having its caller's call site patched. For that call it
// pushes much and keeps its stack pointer in r13: mov r13,rsp; mov rax,[rsp]; and rsp,-16 to mov
// rsp,r13.
func (l *leaf) patching() bool {
	for i := 0; ; {
		n := bytes.Index(l.code[i:], patchCaller)
		if n < 0 {
			return false
		}
		i += n + 3 // mov r13,rsp
		if n = bytes.Index(l.code[i:], restoreStack); n < 0 || l.off < i {
			return false
		}
		if i += n; l.off <= i {
			return true
		}
	}
}

var (
	patchCaller  = []byte{0x4C, 0x8B, 0xEC, 0x48, 0x8B, 0x04, 0x24, 0x48, 0x83, 0xE4, 0xF0}
	restoreStack = []byte{0x49, 0x8B, 0xE5}
)

// madeRoom reports whether an adapter holds its return address in rax.
func (l *leaf) madeRoom() bool {
	for _, e := range extendStack {
		if i := bytes.LastIndex(l.code, e); i >= 0 {
			from := i + bytes.IndexByte(e, 0x58) + 1
			// sub rsp,n; push rax.
			at := max(from, i+len(e))
			if bytes.HasPrefix(l.code[at:], subImm8) {
				at += 4
			} else if bytes.HasPrefix(l.code[at:], subImm) {
				at += 7
			}
			if at < len(l.code) && l.code[at] == 0x50 {
				return l.off >= from && l.off <= at
			}
			n := bytes.Index(l.code[from:], putBackRA)
			return n >= 0 && l.off >= from && l.off <= from+n
		}
	}
	return false
}

// putBackRA is mov [rsp],rax.
var putBackRA = []byte{0x48, 0x89, 0x04, 0x24}

var framelessNames = []string{"native signature handlers", "Signature Handler Temp Buffer", "InlineCacheBuffer", "jni_fast_", "flush_icache"}

func (b *blob) frameless() bool {
	for _, n := range framelessNames {
		if strings.HasPrefix(b.name, n) {
			return true
		}
	}
	return false
}

var pat41 = pat("41")
