// Package dwarfline reads, from DWARF 2 to 5, which source line an address
// belongs to and which functions the compiler inlined there.
package dwarfline

import "encoding/binary"

// Place is one source place. Of several for one address the first is the
// innermost inlined function, the last the function that was compiled.
type Place struct {
	Function string // linkage name if there is one, else the source name; "" if unknown
	File     string // "" if unknown
	Line     int32  // 0 if unknown
}

// Data is the line information of one file.
type Data struct{}

// Open reads the sections.
func Open(order binary.ByteOrder, section func(name string) ([]byte, error)) (*Data, error) {
	return &Data{}, nil
}

// Lookup appends the places of addr to out.
func (d *Data) Lookup(addr uint64, out []Place) []Place { return out }
