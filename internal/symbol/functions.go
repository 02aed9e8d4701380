package symbol

import (
	"debug/elf"

	"github.com/candid-profiler/candid/internal/objfile"
)

// Function is a function as a symbol table has it.
type Function struct {
	Name       string // as in the file
	Start, End uint64 // addresses of the file
	Local      bool
}

// maxFunction bounds a function without a size, in bytes.
const maxFunction = 1 << 20

// Functions returns the functions that the symbol tables name, by address, one for each address.
// An image of Windows gives none.
func (f *File) Functions() []Function {
	if f.m == nil {
		return nil
	}
	f.loadSymbols()
	syms := f.table.syms
	var out []Function
	for i := 0; i < len(syms); {
		next := i + 1
		for next < len(syms) && syms[next].addr == syms[i].addr {
			next++
		}
		addr, size, local := syms[i].addr, uint64(0), true
		for _, e := range syms[i:next] {
			size = max(size, uint64(e.size))
			local = local && e.rank%rankUntyped == rankLocal
		}
		if size == 0 {
			size = maxFunction
			if code, ok := f.m.code(addr); ok {
				size = min(size, code.hi-addr)
			}
		}
		if next < len(syms) {
			size = min(size, syms[next].addr-addr)
		}
		if name := f.table.nameOf(i, addr); name != "" && size > 0 {
			out = append(out, Function{Name: name, Start: addr, End: addr + size, Local: local})
		}
		i = next
	}
	return out
}

// IsELF reports whether it is an ELF file, not an image of Windows.
func (f *File) IsELF() bool { return f.m != nil }

// Machine returns the processor that an ELF file is for, EM_NONE for an image of Windows.
func (f *File) Machine() elf.Machine {
	if f.m == nil {
		return elf.EM_NONE
	}
	return f.m.Machine
}

// Segments returns the program headers of an ELF file; they may not be changed.
func (f *File) Segments() []objfile.Segment {
	if f.m == nil {
		return nil
	}
	return f.m.Segments
}

// ReadCode reads the bytes at an address of an ELF file; false if the file does not have all of them.
func (f *File) ReadCode(addr uint64, b []byte) bool {
	if f.m == nil {
		return false
	}
	n, err := byAddr{f.m}.ReadAt(b, int64(addr))
	return err == nil && n == len(b)
}
