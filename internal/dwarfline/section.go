package dwarfline

import (
	"bytes"
	"io"
)

// Section is the content of a .debug_ section. It is in memory, or in a file from which pieces are
// read as they are needed. The zero value is a section that does not exist.
type Section struct {
	mem  []byte
	r    io.ReaderAt // nil: the content is in memory
	size uint64
}

// Bytes returns a section in memory. b may not be changed afterwards.
func Bytes(b []byte) Section { return Section{mem: b, size: uint64(len(b))} }

// Stored returns a section whose content is in a file. r must stay readable as long as the Data is
// used. A read that fails, as in a file that has been truncated, counts as damage.
func Stored(r *io.SectionReader) Section { return Section{r: r, size: uint64(r.Size())} }

const (
	maxString = 4 << 10
	// shortString is how much is read at first of a string in a file: most are shorter.
	shortString = 128
)

// text returns the zero-terminated string at off, cut at 4 KiB.
func (s *Section) text(off uint64) string {
	switch {
	case off >= s.size:
		return ""
	case s.r == nil:
		b := s.mem[off:]
		return cString(b[:min(len(b), maxString)])
	}
	for n := shortString; ; n = maxString {
		b := make([]byte, min(uint64(n), s.size-off))
		if got, _ := s.r.ReadAt(b, int64(off)); got < len(b) {
			return ""
		}
		if n == maxString || len(b) < n || bytes.IndexByte(b, 0) >= 0 {
			return cString(b)
		}
	}
}

// cString returns the text in b up to the first 0.
func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
