package hotspot

import (
	"fmt"
	"strings"
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

	used, length field // in the HeapBlock; length in segments

	name, size, frameSize, frameComplete field
	codeBegin, codeEnd                   field // pointers, 9 to 22; or offsets:
	codeOffset, dataOffset               field
	kind                                 field // JDK 25+

	method, compileID, level, state, entryBCI field
	entry, verified                           field // pointers up to 21, then offsets from the code's start
	entryOffset, verifiedOffset               field
	stubOffset, origPC                        field
	deoptPtr, deoptOff                        [2]field

	scopesDataPtr, scopesData, scopesPCs field
	afterPCs                             field // end of the table of pcs
	metadata                             field
	mutableData, relocationSize          field // JDK 25+
	immutableData, immutableSize         field // JDK 23+

	kinds map[uint8]blobKind
}

func newBlobLayout(t *tables) (blobLayout, error) {
	l := blobLayout{
		blockHeader:   t.sizes["HeapBlock"],
		used:          t.field("HeapBlock::Header::_used"),
		length:        t.field("HeapBlock::Header::_length"),
		name:          t.field("CodeBlob::_name"),
		size:          t.field("CodeBlob::_size"),
		frameSize:     t.field("CodeBlob::_frame_size"),
		frameComplete: t.field("CodeBlob::_frame_complete_offset"),
		codeBegin:     t.field("CodeBlob::_code_begin"),
		codeEnd:       t.field("CodeBlob::_code_end"),
		codeOffset:    t.field("CodeBlob::_code_offset"),
		dataOffset:    t.field("CodeBlob::_data_offset"),
		kind:          t.field("CodeBlob::_kind"),

		method:         t.field("nmethod::_method", "CompiledMethod::_method"),
		compileID:      t.field("nmethod::_compile_id"),
		level:          t.field("nmethod::_comp_level"),
		state:          t.field("nmethod::_state"),
		entryBCI:       t.field("nmethod::_entry_bci"),
		entry:          t.field("nmethod::_entry_point"),
		verified:       t.field("nmethod::_verified_entry_point"),
		entryOffset:    t.field("nmethod::_entry_offset"),
		verifiedOffset: t.field("nmethod::_verified_entry_offset"),
		stubOffset:     t.field("nmethod::_stub_offset"),
		origPC:         t.field("nmethod::_orig_pc_offset"),

		deoptPtr: [2]field{t.field("CompiledMethod::_deopt_handler_begin"), t.field("CompiledMethod::_deopt_mh_handler_begin")},
		deoptOff: [2]field{
			t.field("nmethod::_deopt_handler_entry_offset", "nmethod::_deopt_handler_offset", "nmethod::_deoptimize_offset"),
			t.field("nmethod::_deopt_mh_handler_offset", "nmethod::_deoptimize_mh_offset")},

		scopesDataPtr:  t.field("CompiledMethod::_scopes_data_begin"),
		scopesData:     t.field("nmethod::_scopes_data_offset"),
		scopesPCs:      t.field("nmethod::_scopes_pcs_offset"),
		metadata:       t.field("nmethod::_metadata_offset"),
		mutableData:    t.field("CodeBlob::_mutable_data"),
		relocationSize: t.field("CodeBlob::_relocation_size"),
		immutableData:  t.field("nmethod::_immutable_data"),
		immutableSize:  t.field("nmethod::_immutable_data_size"),
		kinds:          make(map[uint8]blobKind),
	}
	if l.afterPCs = t.field("nmethod::_dependencies_offset"); l.immutableData.ok {
		l.afterPCs = l.scopesData // since the debug information moved out of the code cache
	}
	geometry := l.codeBegin.ok && l.codeEnd.ok || l.codeOffset.ok && l.dataOffset.ok
	if l.blockHeader == 0 || l.blockHeader > 64 || !l.used.ok || !l.length.ok || !l.name.ok || !l.size.ok || !l.frameSize.ok || !geometry {
		return l, fmt.Errorf("the VM does not publish the layout of its code blobs: %w", ErrNotHotSpot)
	}
	nmethod, codeBlob := t.sizes["nmethod"], t.sizes["CodeBlob"]
	if nmethod == 0 || nmethod > 4096 || codeBlob == 0 || codeBlob > nmethod {
		return l, fmt.Errorf("code blobs of %d and nmethods of %d bytes are not plausible: %w", codeBlob, nmethod, ErrNotHotSpot)
	}
	l.headerLen = int(l.blockHeader + nmethod)
	cookie := max(l.name.end(), l.size.end(), l.method.end(), l.compileID.end())
	l.cookieLen = int(min(l.blockHeader+cookie, uint64(l.headerLen)))
	for name, kind := range kindConstants {
		if v, ok := t.ints[name]; ok && l.kind.ok {
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
	if k, ok := l.kinds[uint8(l.kind.load(header[l.blockHeader:]))]; ok && l.kind.ok {
		return k
	}
	switch {
	case strings.HasPrefix(b.name, "StubRoutines (cont"):
		return blobContinuation
	case strings.HasPrefix(b.name, "StubRoutines"):
		return blobStubRoutines
	case strings.HasPrefix(b.name, "UpcallStub"), strings.HasPrefix(b.name, "upcall_stub"):
		return blobUpcall
	case !l.kind.ok && b.frameSize > 0:
		return blobRuntimeStub
	}
	return blobOther
}

// decode decodes the bounds of the blob at start from its block header and header; its heap ends at
// high and has segments of 1<<shift bytes.
func (l *blobLayout) decode(header []byte, start, high uint64, shift uint) (*blob, bool) {
	if l.used.load(header) == 0 {
		return nil, false
	}
	b, ok := l.decodeAny(header, start, high)
	if !ok || b.end-b.start > l.length.load(header)<<shift {
		return nil, false
	}
	b.segments = l.length.load(header)
	return b, true
}

// decodeAny is decode for a block that may be free, whose block header says nothing about the blob.
func (l *blobLayout) decodeAny(header []byte, start, high uint64) (*blob, bool) {
	if uint64(len(header)) <= l.blockHeader || start >= high {
		return nil, false
	}
	h := header[l.blockHeader:]
	size := l.size.load(h)
	if size == 0 || size > high-start {
		return nil, false
	}
	b := &blob{start: start, end: start + size}
	if l.codeBegin.ok {
		b.codeBegin, b.codeEnd = l.codeBegin.load(h), l.codeEnd.load(h)
	} else {
		b.codeBegin, b.codeEnd = start+l.codeOffset.load(h), start+l.dataOffset.load(h)
	}
	if b.codeBegin < start || b.codeEnd < b.codeBegin || b.codeEnd > b.end {
		return nil, false
	}
	if n := l.frameSize.load(h); int64(n) > 0 {
		if b.frameSize = 8 * n; b.frameSize > maxBlobFrame {
			return nil, false
		}
	}
	b.frameComplete = b.codeEnd
	if n := l.frameComplete.load(h); l.frameComplete.ok && int64(n) >= 0 {
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
	return cookie{name: l.name.load(h), size: l.size.load(h), method: l.method.load(h), compileID: int32(l.compileID.load(h))}
}

// same reports whether the block still holds b.
func (l *blobLayout) same(header []byte, b *blob) bool {
	// A block that was just allocated again still holds the old header, but has another length
	// unless it is the whole block.
	if l.used.load(header) == 0 || uint64(len(header)) <= l.blockHeader || l.length.load(header) != b.segments {
		return false
	}
	h := header[l.blockHeader:]
	if l.name.load(h) != b.cookie.name || l.size.load(h) != b.cookie.size {
		return false
	}
	return b.nm == nil || !b.nm.torn && l.method.load(h) == b.cookie.method && int32(l.compileID.load(h)) == b.cookie.compileID
}

// decodeNMethod reads the additional part of a Java method's blob. h is the blob's header without
// the block's. The blob was looked up for pc.
func (vm *VM) decodeNMethod(b *blob, h []byte, pc uint64) {
	l := &vm.code.layout
	nm := &nmethod{
		method:        l.method.load(h),
		compileID:     int32(l.compileID.load(h)),
		level:         int8(l.level.load(h)),
		osr:           int32(l.entryBCI.load(h)) != -1 && l.entryBCI.ok,
		entry:         b.codeBegin,
		verifiedEntry: b.codeBegin,
		stubBegin:     b.codeEnd,
		origPCOffset:  l.origPC.load(h),
	}
	b.nm = nm
	inCode := func(addr, otherwise uint64) uint64 {
		if addr >= b.codeBegin && addr < b.codeEnd {
			return addr
		}
		return otherwise
	}
	if l.entry.ok {
		nm.entry = inCode(l.entry.load(h), nm.entry)
		nm.verifiedEntry = inCode(l.verified.load(h), nm.entry)
	} else {
		nm.entry = inCode(b.codeBegin+l.entryOffset.load(h), nm.entry)
		nm.verifiedEntry = inCode(b.codeBegin+l.verifiedOffset.load(h), nm.entry)
	}
	if l.stubOffset.ok {
		nm.stubBegin = inCode(b.start+l.stubOffset.load(h), b.codeEnd)
	}
	for i := range nm.deopt {
		switch {
		case l.deoptPtr[i].ok:
			nm.deopt[i] = inCode(l.deoptPtr[i].load(h), 0)
		case l.deoptOff[i].ok:
			nm.deopt[i] = inCode(b.start+l.deoptOff[i].load(h), 0)
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
	case l.immutableData.ok:
		base, size := l.immutableData.load(h), l.immutableSize.load(h)
		d.pcsLo, d.pcsHi = base+l.scopesPCs.load(h), base+l.afterPCs.load(h)
		d.scopesLo, d.scopesHi = base+l.scopesData.load(h), base+size
	case l.scopesDataPtr.ok:
		d.pcsLo, d.pcsHi = b.start+l.scopesPCs.load(h), b.start+l.afterPCs.load(h)
		d.scopesLo, d.scopesHi = l.scopesDataPtr.load(h), d.pcsLo
	default:
		d.pcsLo, d.pcsHi = b.start+l.scopesPCs.load(h), b.start+l.afterPCs.load(h)
		d.scopesLo, d.scopesHi = b.start+l.scopesData.load(h), d.pcsLo
	}
	if l.mutableData.ok {
		d.metadata = l.mutableData.load(h) + l.relocationSize.load(h)
	} else {
		d.metadata = b.start + l.metadata.load(h)
	}
}
