package metadata

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
)

// symbolLayout is the layout of a Symbol, the VM's string (docs/hotspot.md, "Symbols").
type symbolLayout struct {
	length uint64 // of the 16-bit length
	body   uint64
	ok     bool
}

func newSymbolLayout(t *vmstructs.Tables) symbolLayout {
	body := t.Field("Symbol::_body")
	if f := t.Field("Symbol::_length"); f.OK {
		return symbolLayout{length: f.Offset, body: body.Offset, ok: body.OK && body.Offset <= 16 && f.Offset <= 14}
	}
	// 13 to 16: the length is the upper half of a word.
	f := t.Field("Symbol::_length_and_refcount")
	return symbolLayout{length: f.Offset + 2, body: body.Offset, ok: f.OK && body.OK && body.Offset <= 16 && f.Offset <= 12}
}

// Symbols reads the Symbols at addrs into text; those that cannot be read are "".
func (h *Heap) Symbols(addrs []uint64, text []string) {
	l := &h.symbol
	h.vm.Mem.Expect(addrs...)
	for i, a := range addrs {
		var head [16]byte
		if a == 0 || !h.vm.Mem.Near(head[:l.length+2], a) {
			continue
		}
		n := binary.LittleEndian.Uint16(head[l.length:])
		if body := make([]byte, n); n > 0 && h.vm.Mem.Near(body, a+l.body) {
			text[i] = modifiedUTF8(body)
		}
	}
}

// modifiedUTF8 decodes the JVM's variant of UTF-8: a zero takes two bytes and characters beyond the
// basic plane are pairs of surrogates of three bytes each (JVM specification 4.4.7). Anything else
// becomes the replacement character.
func modifiedUTF8(b []byte) string {
	plain := true
	for _, c := range b {
		if c >= 0xC0 || c < 0x20 {
			plain = false
			break
		}
	}
	if plain && utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	three := func(b []byte) (rune, bool) {
		if len(b) < 3 || b[0]&0xF0 != 0xE0 || b[1]&0xC0 != 0x80 || b[2]&0xC0 != 0x80 {
			return 0, false
		}
		return rune(b[0]&0xF)<<12 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F), true
	}
	for len(b) > 0 {
		c := b[0]
		r, n := rune(utf8.RuneError), 1
		switch {
		case c >= 0x20 && c < 0x80:
			r = rune(c)
		case c&0xE0 == 0xC0 && len(b) > 1 && b[1]&0xC0 == 0x80:
			r, n = rune(c&0x1F)<<6|rune(b[1]&0x3F), 2
		case c&0xF0 == 0xE0:
			if hi, ok := three(b); ok {
				r, n = hi, 3
				if lo, ok := three(b[3:]); ok && hi>>10 == 0xD800>>10 && lo>>10 == 0xDC00>>10 {
					r, n = 0x10000+(hi&0x3FF)<<10+lo&0x3FF, 6
				}
			}
		}
		if r < 0x20 {
			r = utf8.RuneError // no control characters in names
		}
		out = utf8.AppendRune(out, r)
		b = b[n:]
	}
	return string(out)
}

// IsClassName reports whether s can be the name of a class in the JVM's own form (JVM specification
// 4.2). Freed memory that looks like a Method often keeps pointers to Symbols that hold anything by
// now.
func IsClassName(s string) bool {
	return s != "" && !strings.ContainsAny(s, ".;[\uFFFD")
}

// IsMethodName reports whether s can be the name of a method (JVM specification 4.2.2).
func IsMethodName(s string) bool {
	return s == "<init>" || s == "<clinit>" || s != "" && !strings.ContainsAny(s, ".;[/<>\uFFFD")
}

// IsDescriptor reports whether s can be the descriptor of a method (JVM specification 4.3.3).
func IsDescriptor(s string) bool {
	return len(s) >= 3 && s[0] == '(' && strings.Count(s, ")") >= 1 && !strings.ContainsRune(s, utf8.RuneError)
}

// ClassName returns the name of a class as the VM has it, "" if it cannot be read.
func (h *Heap) ClassName(klass uint64) string {
	at, ok := h.vm.Mem.Member(klass, h.vm.Field("Klass::_name"))
	if !ok {
		return ""
	}
	var text [1]string
	h.Symbols([]uint64{at}, text[:])
	return text[0]
}

// PoolSlot returns the address of a constant pool's slot.
func (h *Heap) PoolSlot(pool uint64, index uint16) uint64 {
	return pool + h.pool + 8*uint64(index)
}
