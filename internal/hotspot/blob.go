package hotspot

import "github.com/candid-profiler/candid/internal/native"

// blobKind is what a code blob holds. JDK 25 and later publish it; before that, the blob's name
// tells it (docs/hotspot.md, "Code blobs").
type blobKind uint8

const (
	blobOther         blobKind = iota // a BufferBlob that is none of the below
	blobNMethod                       // a compiled Java method
	blobNativeMethod                  // the compiled wrapper of a native method
	blobInterpreter                   // the template interpreter
	blobStubRoutines                  // hand-made stubs: copies, crypto, the call stub
	blobContinuation                  // the StubRoutines blob of continuations (return barrier)
	blobAdapter                       // i2c and c2i adapters
	blobVtable                        // vtable and itable stubs
	blobMethodHandles                 // method handle intrinsics' adapters
	blobRuntimeStub                   // a call from compiled code into the VM
	blobDeopt
	blobSafepoint
	blobException
	blobUncommonTrap
	blobUpcall
)

// blob is a code blob, decoded once. It does not change after it has been put into the cache,
// except that dead is set when its memory was freed or holds another blob.
type blob struct {
	id                 uint32 // index into VM.blobs, never reused
	kind               blobKind
	dead               bool
	start, end         uint64 // the whole blob
	codeBegin, codeEnd uint64
	frameSize          uint64 // bytes, with the saved frame pointer and the return address; 0: has none
	frameComplete      uint64 // address after the prologue; codeEnd or more if never
	name               string
	nm                 *nmethod      // of blobNMethod and blobNativeMethod, else nil
	followed           bool          // depths are known, if followable
	followable         bool          // VM.depth
	depths             native.Depths // where the stack pointer is in the body
	code               []byte        // copy of [codeBegin, codeEnd), fetched by VM.codeOf on first need

	cookie    cookie
	segments  uint64 // of its block in the code heap
	cookieLen uint64 // bytes of its header that could be read
	batch     uint32 // in which it was last compared with the process
	born      uint32 // the batch in which it was first seen
	bornAt    uint64 // VM.Clock when it was first seen; 0 if there is no clock
	late      uint32 // the batch in which it is used although it is dead; see VM.late
	contested uint32 // the batch in which another blob was found to have left its place; see VM.doubt
	intact    bool   // it is dead, but nothing else was put where its code is
	freed     bool   // it was dead when it was first seen
	used      uint32 // batch in which it was last asked for
	seen      uint64 // VM.Mem.Reads when it was last found unchanged
	ahead     uint64 // the last of lookAheadInCode's reads that it is part of
}

// nmethod is what a blob of a Java method has in addition.
type nmethod struct {
	method        uint64 // Method*
	methodID      uint32 // index into VM.methods
	compileID     int32
	level         int8 // 1 to 4; 0 for native wrappers
	osr           bool
	entry         uint64 // unverified entry point
	verifiedEntry uint64
	stubBegin     uint64 // exception and deopt handlers, static call stubs; codeEnd if none
	deopt         [2]uint64
	// deoptSlack is how many bytes after deopt[i] a patched return address may lie (JVMCI: one call
	// instruction).
	deoptSlack   uint64
	origPCOffset uint64 // of the slot with the original pc, from the unextended sp
	pcs          []pcDesc
	enterSpecial bool // jdk.internal.vm.Continuation.enterSpecial

	debug debugInfo
	// torn is set if the VM was making or freeing the nmethod when it was read. It is read again.
	torn   bool
	scopes *scopeTable // decoded on first need
	read   uint64      // VM.Mem.Reads when the last part of its debug information was read
}

// pcDesc describes the code up to a pc (docs/hotspot.md, "PcDescs").
type pcDesc struct {
	pc    int32 // offset from codeBegin
	scope int32 // offset in the scopes data; 0: no scope
}

// exact returns the index in pcs of the element for exactly this pc, or -1.
func (b *blob) exact(pc uint64) int {
	i := b.atOrAfter(pc)
	if i >= 0 && uint64(b.nm.pcs[i].pc) == pc-b.codeBegin {
		return i
	}
	return -1
}

// atOrAfter returns the index of the first element whose pc is not below pc, or -1. pcs holds no
// sentinels.
func (b *blob) atOrAfter(pc uint64) int {
	if b.nm == nil || pc < b.codeBegin || pc >= b.codeEnd {
		return -1
	}
	off := int32(pc - b.codeBegin)
	lo, hi := 0, len(b.nm.pcs)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if b.nm.pcs[m].pc < off {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == len(b.nm.pcs) {
		return -1
	}
	return lo
}

// contains reports whether pc lies in the blob's code.
func (b *blob) contains(pc uint64) bool { return pc >= b.codeBegin && pc < b.codeEnd }
