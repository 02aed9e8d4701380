package metadata

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// JavaString reads a java.lang.String.
func (h *Heap) JavaString(oop uint64) (string, bool) {
	f, ok := h.FieldOf(oop, "value")
	if !ok {
		return "", false
	}
	array, ok := h.Reference(oop + f.Offset)
	if !ok {
		return "", false
	}
	latin := false
	if f.Signature == "[B" {
		c, ok := h.FieldOf(oop, "coder")
		if !ok {
			return "", false
		}
		coder, ok := h.vm.Mem.U8(oop + c.Offset)
		if !ok || coder > 1 {
			return "", false
		}
		latin = coder == 0
	}
	return h.Chars(array, latin)
}

// Chars reads an array that holds Latin-1 as bytes, or UTF-16 as bytes or chars.
func (h *Heap) Chars(array uint64, latin bool) (string, bool) {
	n, ok := h.vm.Mem.U32(array + h.ArrayLength())
	if !ok || n > MaxChars {
		return "", false
	}
	b := make([]byte, h.CharBytes(n, latin))
	if len(b) > 0 && h.vm.Mem.Reader.ReadAt(b, array+h.ArrayData()) != nil {
		return "", false
	}
	return DecodeChars(b, latin), true
}

// MaxChars is longer than any array that holds a name.
const MaxChars = 1 << 24

// CharBytes returns how many bytes of an array of that length are read.
func (h *Heap) CharBytes(length uint32, latin bool) uint64 {
	bytes := uint64(length)
	if !latin && h.vm.Major == 8 {
		bytes *= 2 // a char[]
	}
	return min(bytes, 2*maxNameChars)
}

// DecodeChars decodes Latin-1 or UTF-16.
func DecodeChars(b []byte, latin bool) string {
	if latin {
		r := make([]rune, len(b))
		for i, c := range b {
			r[i] = rune(c)
		}
		return Printable(string(r))
	}
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return Printable(string(utf16.Decode(u)))
}

// Printable replaces control characters: names go to terminals and files.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, s)
}
