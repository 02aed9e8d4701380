package objfile

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
)

// Bounds of Symbols.
const (
	maxSymbols     = 4 << 20
	maxSymbolNames = 256 << 20 // bytes of a string table
	symbolChunk    = 1 << 20   // bytes that are read at once
)

// ErrNoSymbols means that a file has no symbol table of the type.
var ErrNoSymbols = errors.New("no symbol table")

// Symbol is an entry of a symbol table.
type Symbol struct {
	Value, Size uint64
	NameOff     uint32 // in the table's strings
	Info        byte
	Section     elf.SectionIndex
}

// Type returns what the symbol names.
func (s *Symbol) Type() elf.SymType { return elf.SymType(s.Info & 15) }

// Bind returns the symbol's binding.
func (s *Symbol) Bind() elf.SymBind { return elf.SymBind(s.Info >> 4) }

// SymbolSize returns the size of an entry of a symbol table, in bytes.
func (f *File) SymbolSize() uint64 {
	if f.Wide() {
		return elf.Sym64Size
	}
	return elf.Sym32Size
}

// Symbol decodes an entry of a symbol table; b must have SymbolSize bytes.
func (f *File) Symbol(b []byte) Symbol {
	o := f.Order
	if f.Wide() {
		return Symbol{NameOff: o.Uint32(b), Info: b[4], Section: elf.SectionIndex(o.Uint16(b[6:])), Value: o.Uint64(b[8:]), Size: o.Uint64(b[16:])}
	}
	return Symbol{NameOff: o.Uint32(b), Value: uint64(o.Uint32(b[4:])), Size: uint64(o.Uint32(b[8:])), Info: b[12], Section: elf.SectionIndex(o.Uint16(b[14:]))}
}

// Symbols calls each for the symbols of the first table of a type, SHT_SYMTAB or SHT_DYNSYM, in the table's
// order, until each returns false. name may not be kept or changed. The names are in memory until Symbols
// returns. The error wraps ErrNoSymbols if there is no such table; symbols beyond the first 4 million, and names
// beyond 64 KiB, are left out.
func (f *File) Symbols(typ elf.SectionType, each func(s Symbol, name []byte) bool) error {
	const maxName = 64 << 10
	sect := f.SectionOf(typ)
	if sect == nil || sect.Type == elf.SHT_NOBITS {
		return ErrNoSymbols
	}
	str := f.Linked(sect)
	if str == nil {
		return fmt.Errorf("section %s: string table %d does not exist: %w", sect.Name, sect.Link, ErrNoSymbols)
	}
	names, err := f.Raw(str, maxSymbolNames)
	if err != nil {
		return fmt.Errorf("names of section %s: %w", sect.Name, err)
	}
	size := f.SymbolSize()
	left := min(sect.Size/size, maxSymbols)
	buf := make([]byte, min(left*size, symbolChunk/size*size))
	for off := sect.Offset; left > 0; {
		b := buf[:min(uint64(len(buf)), left*size)]
		if off > uint64(f.size) {
			return fmt.Errorf("section %s: %w", sect.Name, io.ErrUnexpectedEOF)
		}
		if n, err := f.r.ReadAt(b, int64(off)); n < len(b) {
			return fmt.Errorf("section %s: %w", sect.Name, errors.Join(io.ErrUnexpectedEOF, err))
		}
		off, left = off+uint64(len(b)), left-uint64(len(b))/size
		for ; len(b) > 0; b = b[size:] {
			s := f.Symbol(b)
			var name []byte
			if uint64(s.NameOff) < uint64(len(names)) {
				name = names[s.NameOff:]
				name = name[:min(len(name), maxName)]
				if i := bytes.IndexByte(name, 0); i >= 0 {
					name = name[:i]
				}
			}
			if !each(s, name) {
				return nil
			}
		}
	}
	return nil
}
