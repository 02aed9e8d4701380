package v8

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/objfile"
)

// ErrNotV8 is returned for programs without V8, or with V8 in an unknown form.
var ErrNotV8 = errors.New("no V8 whose frames are known")

// role is what is special about a built-in function's frames.
type role uint8

const (
	plain   role = iota
	opaque       // its calls have no frame of their own
	entry        // runs a function of bytecode: the frame is that function's
	handler      // runs one bytecode: an entry called it
)

// builtin is a function in the blob.
type builtin struct {
	start, end uint64 // addresses of the file
	role       role
}

// facts are what a program's file says about its V8. Addresses are those of the file.
type facts struct {
	blobStart, blobEnd uint64
	builtins           []builtin // by address
	vtables            []uint64  // first words of code space objects
	ints               map[string]int32
	segments           []objfile.Segment
}

// Bounds on what a file may make the reader allocate.
const (
	maxSection  = 64 << 20
	maxSymbols  = 1 << 22
	maxBuiltins = 1 << 14
)

// readFacts reads a program's file. The error wraps ErrNotV8 if V8 is not in it.
func readFacts(r io.ReaderAt) (*facts, error) {
	f, err := objfile.Open(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrNotV8, err)
	}
	if !f.Wide() || f.Order != binary.LittleEndian || f.Machine != elf.EM_X86_64 {
		return nil, ErrNotV8
	}
	out := &facts{ints: map[string]int32{}}
	for _, p := range f.Segments {
		if p.Type == elf.PT_LOAD {
			out.segments = append(out.segments, p)
		}
	}
	at := map[string]uint64{} // addresses of the numbers that are read once all symbols are known
	for _, typ := range []elf.SectionType{elf.SHT_DYNSYM, elf.SHT_SYMTAB} {
		s := f.SectionOf(typ)
		if s == nil || f.Linked(s) == nil {
			continue
		}
		symbols, err := section(f, s)
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrNotV8, err)
		}
		names, err := section(f, f.Linked(s))
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrNotV8, err)
		}
		out.take(symbols, names, at)
		if typ == elf.SHT_DYNSYM && len(at) == 0 && len(out.vtables) == 0 {
			return nil, ErrNotV8 // the symbols for debuggers are exported
		}
	}
	for name, addr := range at {
		if v, ok := out.int(r, addr); ok {
			out.ints[name] = v
		}
	}
	size, ok := out.ints["blob size"]
	if out.blobStart == 0 || !ok || size <= 0 || len(out.vtables) == 0 || out.ints["TaggedSize"] != 8 {
		return nil, ErrNotV8
	}
	out.blobEnd = out.blobStart + uint64(size)
	slices.SortFunc(out.builtins, func(a, b builtin) int {
		switch {
		case a.start < b.start:
			return -1
		case a.start > b.start:
			return 1
		}
		return 0
	})
	return out, nil
}

func section(f *objfile.File, s *objfile.Section) ([]byte, error) {
	if s.Packed() {
		return nil, fmt.Errorf("section %s is compressed", s.Name)
	}
	return f.Raw(s, maxSection)
}

// take scans a symbol table; at receives the addresses of numbers by their names.
func (f *facts) take(symbols, names []byte, at map[string]uint64) {
	const size = 24 // of an Elf64_Sym
	for n := 0; len(symbols) >= size && n < maxSymbols; n++ {
		sym := symbols[:size]
		symbols = symbols[size:]
		off := binary.LittleEndian.Uint32(sym)
		if uint64(off) >= uint64(len(names)) {
			continue
		}
		name := names[off:]
		if len(name) < 9 || name[0] != 'v' && name[0] != 'B' && name[0] != '_' {
			continue
		}
		if end := slices.Index(name[:min(len(name), 256)], 0); end >= 0 {
			name = name[:end]
		} else {
			continue
		}
		value, length := binary.LittleEndian.Uint64(sym[8:]), binary.LittleEndian.Uint64(sym[16:])
		switch text := string(name); {
		case strings.HasPrefix(text, "v8dbg_"):
			if len(at) < 1<<12 {
				at[text[len("v8dbg_"):]] = value
			}
		case text == "v8_Default_embedded_blob_code_":
			f.blobStart = value
		case text == "v8_Default_embedded_blob_code_size_":
			at["blob size"] = value
		case strings.HasPrefix(text, "_ZN2v88internal7Version5major"), strings.HasPrefix(text, "_ZN2v88internal7Version6major_E"):
			at["major"] = value
		case text == "_ZN2v88internal7Version6minor_E":
			at["minor"] = value
		case text == "_ZN2v88internal7Version6build_E":
			at["build"] = value
		case text == "_ZTVN2v88internal9CodeSpaceE", text == "_ZTVN2v88internal20CodeLargeObjectSpaceE":
			// An object begins with the address after the vtable's offset to top and type
			// information (Itanium C++ ABI, 2.5.2).
			if v := value + 16; !slices.Contains(f.vtables, v) && len(f.vtables) < 8 {
				f.vtables = append(f.vtables, v)
			}
		case strings.HasPrefix(text, "Builtins_"):
			if length > 0 && length < 1<<24 && len(f.builtins) < maxBuiltins {
				f.builtins = append(f.builtins, builtin{value, value + length, roleOf(text[len("Builtins_"):])})
			}
		}
	}
}

// roleOf returns what is special about a built-in function, by its name
// (src/builtins/builtins-definitions.h).
func roleOf(name string) role {
	switch {
	case strings.HasPrefix(name, "DeoptimizationEntry_"), strings.HasPrefix(name, "BaselineOutOfLinePrologue"), strings.HasPrefix(name, "BaselineLeaveFrame"),
		strings.HasPrefix(name, "Mem"), name == "InterpreterOnStackReplacement", name == "ResumeGeneratorTrampoline", name == "RestartFrameTrampoline", name == "DebugBreakTrampoline":
		// They work on their caller's frame, or call without a frame: TestBlob finds them.
		return opaque
	case strings.HasPrefix(name, "InterpreterEntryTrampoline"), strings.HasPrefix(name, "InterpreterEnterAt"), strings.HasPrefix(name, "BaselineOrInterpreterEnterAt"):
		return entry
	case strings.HasSuffix(name, "Handler"):
		return handler
	}
	return plain
}

// builtin returns the built-in function at an address; the zero value if there is none.
func (f *facts) builtin(addr uint64) builtin {
	i, found := slices.BinarySearchFunc(f.builtins, addr, func(b builtin, addr uint64) int {
		switch {
		case b.start < addr:
			return -1
		case b.start > addr:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i >= 0 && addr < f.builtins[i].end {
		return f.builtins[i]
	}
	return builtin{}
}

// int reads a number of the file's data; what lies after a segment's content is 0.
func (f *facts) int(r io.ReaderAt, addr uint64) (int32, bool) {
	for _, p := range f.segments {
		off := addr - p.Vaddr
		if off >= p.Memsz || p.Memsz-off < 4 {
			continue
		}
		if off+4 > p.Filesz {
			return 0, true
		}
		var b [4]byte
		if _, err := r.ReadAt(b[:], int64(p.Off+off)); err != nil {
			return 0, false
		}
		return int32(binary.LittleEndian.Uint32(b[:])), true
	}
	return 0, false
}

// address returns the address of the file's content at an offset.
func (f *facts) address(off uint64) (uint64, bool) {
	for _, p := range f.segments {
		if in := off - p.Off; p.Flags&elf.PF_X != 0 && in < p.Filesz {
			return p.Vaddr + in, true
		}
	}
	return 0, false
}
