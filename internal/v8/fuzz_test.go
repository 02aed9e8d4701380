package v8

import (
	"encoding/binary"
	"testing"
)

// FuzzSymbols checks that the reader copes with any symbol table.
func FuzzSymbols(f *testing.F) {
	names := []byte("\x00v8dbg_off_fp_function\x00Builtins_AddHandler\x00v8_Default_embedded_blob_code_\x00_ZTVN2v88internal9CodeSpaceE\x00")
	symbols := make([]byte, 0, 96)
	for _, off := range []uint32{1, 23, 43, 74} {
		var s [24]byte
		binary.LittleEndian.PutUint32(s[:], off)
		binary.LittleEndian.PutUint64(s[8:], 0x1000+uint64(off))
		binary.LittleEndian.PutUint64(s[16:], 64)
		symbols = append(symbols, s[:]...)
	}
	f.Add(symbols, names)
	whole := facts{ints: map[string]int32{}}
	if at := map[string]uint64{}; true {
		whole.take(symbols, names, at)
		if at["off_fp_function"] != 0x1001 || len(whole.builtins) != 1 || whole.builtins[0].role != handler || whole.blobStart != 0x102b || len(whole.vtables) != 1 {
			f.Errorf("read %v and %+v", at, whole)
		}
	}
	f.Fuzz(func(t *testing.T, symbols, names []byte) {
		fs := facts{ints: map[string]int32{}}
		at := map[string]uint64{}
		fs.take(symbols, names, at)
		if len(at) > 1<<12+8 || len(fs.builtins) > maxBuiltins {
			t.Errorf("%d numbers, %d functions", len(at), len(fs.builtins))
		}
		fs.builtin(0x1010)
	})
}

// FuzzLeaf checks that no code makes its reader run on, or find a frame below the stack pointer.
func FuzzLeaf(f *testing.F) {
	f.Add([]byte{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3}, uint16(0), true)
	f.Add([]byte{0x48, 0x8b, 0x6d, 0x00, 0x48, 0x83, 0xc4, 0x48, 0xff, 0xe1}, uint16(4), true)
	f.Fuzz(func(t *testing.T, code []byte, at uint16, builtin bool) {
		const base = 0x10000
		m := &fileMemory{base, append(code, make([]byte, longestInst)...)}
		own := func(a uint64) bool { return a >= base && a < base+uint64(len(code)) }
		if l := read(m, base+uint64(at), builtin, own); l.depth < 0 {
			t.Errorf("%+v", l)
		}
	})
}

// FuzzHeap checks that no heap makes a name of endless length, or the reader run on.
func FuzzHeap(f *testing.F) {
	f.Add(make([]byte, 256), uint16(1), uint16(65), uint16(129))
	ints := map[string]int32{
		"type_JSFunction__JS_FUNCTION_TYPE": 2061, "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE": 190, "type_ScopeInfo__SCOPE_INFO_TYPE": 188,
		"type_Script__SCRIPT_TYPE": 150, "type_Code__CODE_TYPE": 160, "FirstNonstringType": 128, "StringRepresentationMask": 7, "StringEncodingMask": 8,
		"OneByteStringTag": 8, "ThinStringTag": 5, "ConsStringTag": 1, "scopeinfo_idx_first_vars": 3, "scopeinfo_idx_ncontextlocals": 2,
		"class_Map__instance_type__uint16_t": 12, "class_JSFunction__shared__SharedFunctionInfo": 24, "class_JSFunction__context__Context": 32,
		"class_SharedFunctionInfo__function_data__Object": 8, "class_SharedFunctionInfo__name_or_scope_info__Object": 16,
		"class_SharedFunctionInfo__script_or_debug_info__HeapObject": 32, "class_Script__name__Object": 16, "class_String__length__int32_t": 12,
		"class_SeqOneByteString__chars__char": 16, "class_SeqTwoByteString__chars__char": 16, "class_ConsString__first__String": 16,
		"class_ConsString__second__String": 24, "class_ThinString__actual__String": 16,
	}
	f.Fuzz(func(t *testing.T, data []byte, function, bytecode, context uint16) {
		const base = 0x10000
		// Words of the data that look like pointers lead back into it.
		for i := 0; i+8 <= len(data); i += 8 {
			if w := binary.LittleEndian.Uint64(data[i:]); w&3 == 1 {
				binary.LittleEndian.PutUint64(data[i:], base+w%uint64(len(data))&^7|1)
			}
		}
		h := newHeap(&facts{ints: ints}, &fileMemory{base, data})
		n, ok := h.function(frameKey{base + uint64(function)&^7 | 1, base + uint64(bytecode)&^7 | 1, base + uint64(context)&^7 | 1})
		if ok && (len(n.function) > 1<<14 || len(n.file) > 1<<14 || n.function == "") {
			t.Errorf("a name of %d and %d bytes", len(n.function), len(n.file))
		}
		h.text(base+uint64(bytecode)&^7|1, 0)
		h.scopeName(base + uint64(context)&^7 | 1)
	})
}
