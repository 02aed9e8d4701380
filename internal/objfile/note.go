package objfile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

const (
	maxNotes    = 1 << 16 // bytes of the notes of one section or segment
	maxAllNotes = 1 << 20 // bytes of all of them, which may overlap in a hostile file
)

// BuildID returns the file's build id as lower-case hex, "" if it has none.
func (f *File) BuildID() string {
	left := uint64(maxAllNotes)
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type != elf.SHT_NOTE {
			continue
		}
		if b, err := f.Raw(s, min(maxNotes, left)); err == nil {
			left -= min(left, uint64(len(b)))
			if id := NoteBuildID(b, f.Order); id != "" {
				return id
			}
		}
	}
	for i := range f.Segments {
		s := &f.Segments[i]
		if s.Type != elf.PT_NOTE {
			continue
		}
		if b, err := f.Range(s.Off, s.Filesz, min(maxNotes, left)); err == nil {
			left -= min(left, uint64(len(b)))
			if id := NoteBuildID(b, f.Order); id != "" {
				return id
			}
		}
	}
	return ""
}

// NoteBuildID returns the build id in a list of notes as lower-case hex, "" if there is none.
func NoteBuildID(b []byte, order binary.ByteOrder) string {
	const ntGNUBuildID = 3
	for len(b) >= 12 {
		namesz, descsz := uint64(order.Uint32(b)), uint64(order.Uint32(b[4:]))
		typ := order.Uint32(b[8:])
		b = b[12:]
		nameEnd, descLen := (namesz+3)&^3, (descsz+3)&^3
		if nameEnd+descsz > uint64(len(b)) {
			return ""
		}
		if typ == ntGNUBuildID && string(b[:namesz]) == "GNU\x00" && descsz >= 2 && descsz <= 64 {
			return fmt.Sprintf("%x", b[nameEnd:nameEnd+descsz])
		}
		b = b[min(nameEnd+descLen, uint64(len(b))):]
	}
	return ""
}

// DebugLink returns what .gnu_debuglink says: the name of the separate file of debug information, without a
// directory, and its checksum. It returns false if there is none.
func (f *File) DebugLink() (name string, crc uint32, ok bool) {
	b, err := f.Raw(f.Section(".gnu_debuglink"), 4096)
	if err != nil {
		return "", 0, false
	}
	return ParseDebugLink(b, f.Order)
}

// ParseDebugLink is DebugLink for the content of the section.
func ParseDebugLink(b []byte, order binary.ByteOrder) (name string, crc uint32, ok bool) {
	name = CString(b, 0, 255)
	at := (len(name) + 4) &^ 3 // after the name and its zero, aligned
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") || at+4 > len(b) {
		return "", 0, false
	}
	return name, order.Uint32(b[at:]), true
}
