package symbol

import "debug/elf"

// Origin is the source of a file's function names.
type Origin string

// The origins, most complete first.
const (
	OriginSymtab    Origin = "symtab"         // the file's own table of all symbols
	OriginDebugFile Origin = "debug file"     // a separate file of debug information
	OriginGo        Origin = "pclntab"        // Go's own table of functions
	OriginMini      Origin = ".gnu_debugdata" // the packed table of symbols that .dynsym lacks
	OriginDynsym    Origin = "dynsym only"    // exported functions only
	OriginExports   Origin = "exports only"   // of a PE image
	OriginPDB       Origin = "PDB"            // the separate file of debug information of a PE image
	OriginNone      Origin = "none"
)

// Origin returns where the names come from; the most complete one if there are several.
func (f *File) Origin() Origin {
	switch {
	case f.pe != nil:
		return f.pe.origin
	case f.m.has(elf.SHT_SYMTAB):
		return OriginSymtab
	case f.debug.has(elf.SHT_SYMTAB):
		return OriginDebugFile
	case f.goTable != nil:
		return OriginGo
	case f.m.Section(".gnu_debugdata") != nil:
		return OriginMini
	case f.m.has(elf.SHT_DYNSYM):
		return OriginDynsym
	}
	return OriginNone
}

// HasLines reports whether there is source line information.
func (f *File) HasLines() bool {
	if f.pe != nil {
		return f.hasLines() || f.pe.goTable != nil
	}
	for _, m := range []*image{f.m, f.debug} {
		if m != nil && (m.Section(".debug_line") != nil || m.Section(".zdebug_line") != nil) {
			return true
		}
	}
	return f.goTable != nil
}

// has reports whether the image has a non-empty table of that type.
func (m *image) has(typ elf.SectionType) bool {
	if m == nil {
		return false
	}
	for i := range m.Sections {
		if s := &m.Sections[i]; s.Type == typ && s.Size > 0 {
			return true
		}
	}
	return false
}
