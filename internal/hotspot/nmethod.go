package hotspot

import (
	"fmt"
	"strings"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
)

// Bounds on what a blob's header may claim.
const (
	maxBlobFrame = 1 << 20 // bytes of a frame
	jvmciSlack   = 16      // bytes: the longest call instruction, rounded up
)

// blobLayout is the layout of a code blob in this VM (docs/hotspot.md, "Code blobs").
type blobLayout struct {
	blockHeader uint64 // sizeof(HeapBlock), just below each blob
	headerLen   int    // blockHeader and the part of the blob that is read to decode it
	cookieLen   int    // blockHeader and the part that tells one blob from another

	used, length vmstructs.Field // in the HeapBlock; length in segments

	name, size, frameSize, frameComplete vmstructs.Field
	codeBegin, codeEnd                   vmstructs.Field // pointers, 9 to 22; or offsets:
	codeOffset, dataOffset               vmstructs.Field
	kind                                 vmstructs.Field // JDK 25+

	method, compileID, level, state, entryBCI vmstructs.Field
	entry, verified                           vmstructs.Field // pointers up to 21, then offsets from the code's start
	entryOffset, verifiedOffset               vmstructs.Field
	stubOffset, origPC                        vmstructs.Field
	deoptPtr, deoptOff                        [2]vmstructs.Field

	scopesDataPtr, scopesData, scopesPCs vmstructs.Field
	afterPCs                             vmstructs.Field // end of the table of pcs
	metadata                             vmstructs.Field
	mutableData, relocationSize          vmstructs.Field // JDK 25+
	immutableData, immutableSize         vmstructs.Field // JDK 23+

	kinds map[uint8]blobKind
}

func newBlobLayout(t *vmstructs.Tables) (blobLayout, error) {
	l := blobLayout{
		blockHeader:   t.Sizes["HeapBlock"],
		used:          t.Field("HeapBlock::Header::_used"),
		length:        t.Field("HeapBlock::Header::_length"),
		name:          t.Field("CodeBlob::_name"),
		size:          t.Field("CodeBlob::_size"),
		frameSize:     t.Field("CodeBlob::_frame_size"),
		frameComplete: t.Field("CodeBlob::_frame_complete_offset"),
		codeBegin:     t.Field("CodeBlob::_code_begin"),
		codeEnd:       t.Field("CodeBlob::_code_end"),
		codeOffset:    t.Field("CodeBlob::_code_offset"),
		dataOffset:    t.Field("CodeBlob::_data_offset"),
		kind:          t.Field("CodeBlob::_kind"),

		method:         t.Field("nmethod::_method", "CompiledMethod::_method"),
		compileID:      t.Field("nmethod::_compile_id"),
		level:          t.Field("nmethod::_comp_level"),
		state:          t.Field("nmethod::_state"),
		entryBCI:       t.Field("nmethod::_entry_bci"),
		entry:          t.Field("nmethod::_entry_point"),
		verified:       t.Field("nmethod::_verified_entry_point"),
		entryOffset:    t.Field("nmethod::_entry_offset"),
		verifiedOffset: t.Field("nmethod::_verified_entry_offset"),
		stubOffset:     t.Field("nmethod::_stub_offset"),
		origPC:         t.Field("nmethod::_orig_pc_offset"),

		deoptPtr: [2]vmstructs.Field{t.Field("CompiledMethod::_deopt_handler_begin"), t.Field("CompiledMethod::_deopt_mh_handler_begin")},
		deoptOff: [2]vmstructs.Field{
			t.Field("nmethod::_deopt_handler_entry_offset", "nmethod::_deopt_handler_offset", "nmethod::_deoptimize_offset"),
			t.Field("nmethod::_deopt_mh_handler_offset", "nmethod::_deoptimize_mh_offset")},

		scopesDataPtr:  t.Field("CompiledMethod::_scopes_data_begin"),
		scopesData:     t.Field("nmethod::_scopes_data_offset"),
		scopesPCs:      t.Field("nmethod::_scopes_pcs_offset"),
		metadata:       t.Field("nmethod::_metadata_offset"),
		mutableData:    t.Field("CodeBlob::_mutable_data"),
		relocationSize: t.Field("CodeBlob::_relocation_size"),
		immutableData:  t.Field("nmethod::_immutable_data"),
		immutableSize:  t.Field("nmethod::_immutable_data_size"),
		kinds:          make(map[uint8]blobKind),
	}
	if l.afterPCs = t.Field("nmethod::_dependencies_offset"); l.immutableData.OK {
		l.afterPCs = l.scopesData // since the debug information moved out of the code cache
	}
	geometry := l.codeBegin.OK && l.codeEnd.OK || l.codeOffset.OK && l.dataOffset.OK
	if l.blockHeader == 0 || l.blockHeader > 64 || !l.used.OK || !l.length.OK || !l.name.OK || !l.size.OK || !l.frameSize.OK || !geometry {
		return l, fmt.Errorf("the VM does not publish the layout of its code blobs: %w", vmstructs.ErrNotHotSpot)
	}
	nmethod, codeBlob := t.Sizes["nmethod"], t.Sizes["CodeBlob"]
	if nmethod == 0 || nmethod > 4096 || codeBlob == 0 || codeBlob > nmethod {
		return l, fmt.Errorf("code blobs of %d and nmethods of %d bytes are not plausible: %w", codeBlob, nmethod, vmstructs.ErrNotHotSpot)
	}
	l.headerLen = int(l.blockHeader + nmethod)
	cookie := max(l.name.End(), l.size.End(), l.method.End(), l.compileID.End())
	l.cookieLen = int(min(l.blockHeader+cookie, uint64(l.headerLen)))
	for name, kind := range kindConstants {
		if v, ok := t.Ints[name]; ok && l.kind.OK {
			l.kinds[uint8(v)] = kind
		}
	}
	return l, nil
}

// kindConstants are the kinds as JDK 25+ publishes them; the values depend on
// how the VM was built.
var kindConstants = map[string]blobKind{
	"CodeBlobKind::Nmethod":        blobNMethod,
	"CodeBlobKind::Adapter":        blobAdapter,
	"CodeBlobKind::Vtable":         blobVtable,
	"CodeBlobKind::MHAdapter":      blobMethodHandles,
	"CodeBlobKind::RuntimeStub":    blobRuntimeStub,
	"CodeBlobKind::Deoptimization": blobDeopt,
	"CodeBlobKind::Safepoint":      blobSafepoint,
	"CodeBlobKind::Exception":      blobException,
	"CodeBlobKind::UncommonTrap":   blobUncommonTrap,
	"CodeBlobKind::Upcall":         blobUpcall,
}

// kindNames are the names that tell a blob's kind. They take precedence over the published kind,
// which does not tell native methods from others.
var kindNames = map[string]blobKind{
	"nmethod":                blobNMethod,
	"native nmethod":         blobNativeMethod,
	"Interpreter":            blobInterpreter,
	"I2C/C2I adapters":       blobAdapter,
	"adapters":               blobAdapter,
	"vtable chunks":          blobVtable,
	"MethodHandles adapters": blobMethodHandles,
	"DeoptimizationBlob":     blobDeopt,
	"SafepointBlob":          blobSafepoint,
	"ExceptionBlob":          blobException,
	"UncommonTrapBlob":       blobUncommonTrap,
}

// kindOf returns what a blob is.
func (l *blobLayout) kindOf(b *blob, header []byte) blobKind {
	if k, ok := kindNames[b.name]; ok {
		return k
	}
	if k, ok := l.kinds[uint8(l.kind.Load(header[l.blockHeader:]))]; ok && l.kind.OK {
		return k
	}
	switch {
	case strings.HasPrefix(b.name, "StubRoutines (cont"):
		return blobContinuation
	case strings.HasPrefix(b.name, "StubRoutines"):
		return blobStubRoutines
	case strings.HasPrefix(b.name, "UpcallStub"), strings.HasPrefix(b.name, "upcall_stub"):
		return blobUpcall
	case !l.kind.OK && b.frameSize > 0:
		return blobRuntimeStub
	}
	return blobOther
}

// decode decodes the bounds of the blob at start from its block header and header; its heap ends at
// high and has segments of 1<<shift bytes.
func (l *blobLayout) decode(header []byte, start, high uint64, shift uint) (*blob, bool) {
	if l.used.Load(header) == 0 {
		return nil, false
	}
	b, ok := l.decodeAny(header, start, high)
	if !ok || b.end-b.start > l.length.Load(header)<<shift {
		return nil, false
	}
	b.segments = l.length.Load(header)
	return b, true
}

// decodeAny is decode for a block that may be free, whose block header says nothing about the blob.
func (l *blobLayout) decodeAny(header []byte, start, high uint64) (*blob, bool) {
	if uint64(len(header)) <= l.blockHeader || start >= high {
		return nil, false
	}
	h := header[l.blockHeader:]
	size := l.size.Load(h)
	if size == 0 || size > high-start {
		return nil, false
	}
	b := &blob{start: start, end: start + size}
	if l.codeBegin.OK {
		b.codeBegin, b.codeEnd = l.codeBegin.Load(h), l.codeEnd.Load(h)
	} else {
		b.codeBegin, b.codeEnd = start+l.codeOffset.Load(h), start+l.dataOffset.Load(h)
	}
	if b.codeBegin < start || b.codeEnd < b.codeBegin || b.codeEnd > b.end {
		return nil, false
	}
	if n := l.frameSize.Load(h); int64(n) > 0 {
		if b.frameSize = 8 * n; b.frameSize > maxBlobFrame {
			return nil, false
		}
	}
	b.frameComplete = b.codeEnd
	if n := l.frameComplete.Load(h); l.frameComplete.OK && int64(n) >= 0 {
		b.frameComplete = min(b.codeBegin+n, b.codeEnd)
	}
	b.cookie = l.cookieOf(h)
	return b, true
}

// cookie tells a blob from another that may replace it.
type cookie struct {
	name, size, method uint64
	compileID          int32
}

func (l *blobLayout) cookieOf(h []byte) cookie {
	return cookie{name: l.name.Load(h), size: l.size.Load(h), method: l.method.Load(h), compileID: int32(l.compileID.Load(h))}
}

// same reports whether the block still holds b.
func (l *blobLayout) same(header []byte, b *blob) bool {
	// A block that was just allocated again still holds the old header, but has another length
	// unless it is the whole block.
	if l.used.Load(header) == 0 || uint64(len(header)) <= l.blockHeader || l.length.Load(header) != b.segments {
		return false
	}
	h := header[l.blockHeader:]
	if l.name.Load(h) != b.cookie.name || l.size.Load(h) != b.cookie.size {
		return false
	}
	return b.nm == nil || !b.nm.torn && l.method.Load(h) == b.cookie.method && int32(l.compileID.Load(h)) == b.cookie.compileID
}

// decodeNMethod reads the additional part of a Java method's blob. h is the blob's header without
// the block's. The blob was looked up for pc.
func (vm *VM) decodeNMethod(b *blob, h []byte, pc uint64) {
	l := &vm.code.layout
	nm := &nmethod{
		method:        l.method.Load(h),
		compileID:     int32(l.compileID.Load(h)),
		level:         int8(l.level.Load(h)),
		osr:           int32(l.entryBCI.Load(h)) != -1 && l.entryBCI.OK,
		entry:         b.codeBegin,
		verifiedEntry: b.codeBegin,
		stubBegin:     b.codeEnd,
		origPCOffset:  l.origPC.Load(h),
	}
	b.nm = nm
	inCode := func(addr, otherwise uint64) uint64 {
		if addr >= b.codeBegin && addr < b.codeEnd {
			return addr
		}
		return otherwise
	}
	if l.entry.OK {
		nm.entry = inCode(l.entry.Load(h), nm.entry)
		nm.verifiedEntry = inCode(l.verified.Load(h), nm.entry)
	} else {
		nm.entry = inCode(b.codeBegin+l.entryOffset.Load(h), nm.entry)
		nm.verifiedEntry = inCode(b.codeBegin+l.verifiedOffset.Load(h), nm.entry)
	}
	if l.stubOffset.OK {
		nm.stubBegin = inCode(b.start+l.stubOffset.Load(h), b.codeEnd)
	}
	for i := range nm.deopt {
		switch {
		case l.deoptPtr[i].OK:
			nm.deopt[i] = inCode(l.deoptPtr[i].Load(h), 0)
		case l.deoptOff[i].OK:
			nm.deopt[i] = inCode(b.start+l.deoptOff[i].Load(h), 0)
		}
	}
	if vm.code.jvmci {
		nm.deoptSlack = jvmciSlack
	}
	if nm.origPCOffset >= b.frameSize {
		nm.origPCOffset = 0
	}
	vm.locateDebugInfo(b, h)
	vm.readDebugInfo(b)
	vm.methods.naming = true
	vm.expectNames(b, pc)
	nm.methodID, _ = vm.method(nm.method)
	vm.methods.naming = false
	if b.kind == blobNativeMethod && nm.methodID != 0 {
		m := vm.methods.all[nm.methodID]
		if m.class == "jdk/internal/vm/Continuation" {
			nm.enterSpecial = m.name == "enterSpecial"
			vm.stepping.continuations = true
		}
	}
}

// locateDebugInfo finds the nmethod's tables (docs/hotspot.md, "PcDescs" and "Scopes").
func (vm *VM) locateDebugInfo(b *blob, h []byte) {
	l, d := &vm.code.layout, &b.nm.debug
	switch {
	case l.immutableData.OK:
		base, size := l.immutableData.Load(h), l.immutableSize.Load(h)
		d.pcsLo, d.pcsHi = base+l.scopesPCs.Load(h), base+l.afterPCs.Load(h)
		d.scopesLo, d.scopesHi = base+l.scopesData.Load(h), base+size
	case l.scopesDataPtr.OK:
		d.pcsLo, d.pcsHi = b.start+l.scopesPCs.Load(h), b.start+l.afterPCs.Load(h)
		d.scopesLo, d.scopesHi = l.scopesDataPtr.Load(h), d.pcsLo
	default:
		d.pcsLo, d.pcsHi = b.start+l.scopesPCs.Load(h), b.start+l.afterPCs.Load(h)
		d.scopesLo, d.scopesHi = b.start+l.scopesData.Load(h), d.pcsLo
	}
	if l.mutableData.OK {
		d.metadata = l.mutableData.Load(h) + l.relocationSize.Load(h)
	} else {
		d.metadata = b.start + l.metadata.Load(h)
	}
}
