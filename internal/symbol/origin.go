package symbol

import "debug/elf"

// Origin is where a file's function names come from.
type Origin string

// The origins, the fullest first.
const (
	OriginSymtab    Origin = "symtab"         // the file's own table of all symbols
	OriginDebugFile Origin = "debug file"     // a separate file of debug information
	OriginGo        Origin = "pclntab"        // Go's own table of functions
	OriginMini      Origin = ".gnu_debugdata" // the packed table of symbols that .dynsym lacks
	OriginDynsym    Origin = "dynsym only"    // exported functions only
	OriginNone      Origin = "none"
)

// Origin says where the names come from; of several the fullest.
func (f *File) Origin() Origin {
	switch {
	case f.m.has(elf.SHT_SYMTAB):
		return OriginSymtab
	case f.debug.has(elf.SHT_SYMTAB):
		return OriginDebugFile
	case f.goTable != nil:
		return OriginGo
	case f.m.find(".gnu_debugdata") != nil:
		return OriginMini
	case f.m.has(elf.SHT_DYNSYM):
		return OriginDynsym
	}
	return OriginNone
}

// HasLines reports whether there is information on source lines.
func (f *File) HasLines() bool {
	for _, m := range []*image{f.m, f.debug} {
		if m != nil && (m.find(".debug_line") != nil || m.find(".zdebug_line") != nil) {
			return true
		}
	}
	return f.goTable != nil
}

// has reports whether the image has a table of that type that is not empty.
func (m *image) has(typ elf.SectionType) bool {
	if m == nil {
		return false
	}
	for i := range m.sections {
		if s := &m.sections[i]; s.typ == typ && s.size > 0 {
			return true
		}
	}
	return false
}
