package nativeimage

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// heap reads objects of the image heap. References are relative to a base that lies somewhat before
// it, 8 bytes wide or, in programs with compressed references, 4.
type heap struct {
	source
	span   span
	base   uint64
	wide   bool
	shift  uint8  // of a narrow reference
	length uint64 // offset of an array's length, bytes

	bytesHub  uint64 // of byte arrays
	stringHub uint64
	chars     uint64 // offset of a string's characters in it; 0: not known
}

// refSize returns the size of a reference in bytes.
func (h *heap) refSize() uint64 {
	if h.wide {
		return 8
	}
	return 4
}

// deref returns the address that a reference stands for; false for null, or if it leads out of the
// image heap.
func (h *heap) deref(ref uint64) (uint64, bool) {
	if !h.wide {
		ref <<= h.shift
	}
	addr := h.base + ref
	return addr, ref != 0 && addr&7 == 0 && h.span.has(addr)
}

// field returns the address that the reference at addr stands for.
func (h *heap) field(addr uint64) (uint64, bool) {
	ref, ok := number(h, addr, int(h.refSize()))
	if !ok {
		return 0, false
	}
	return h.deref(ref)
}

// hub returns what identifies the class of the object at addr: its reference to the class, whose
// lowest bits are the collector's. The upper half of a wide one may be the object's hash.
func (h *heap) hub(addr uint64) (uint64, bool) {
	v, ok := number(h, addr, 4)
	return v &^ 7, ok
}

// count returns the length of the array at addr.
func (h *heap) count(addr uint64) (uint64, bool) { return number(h, addr+h.length, 4) }

// maxTable bounds the arrays that are read, in bytes.
const maxTable = 256 << 20

// byteArray reads a byte array.
func (h *heap) byteArray(addr uint64) ([]byte, bool) {
	n, ok := h.count(addr)
	if at := addr + h.length + 4; !ok || n > maxTable || !h.span.has(at) || h.span.end-at < n {
		return nil, false
	}
	b := make([]byte, n)
	return b, h.bytes(b, addr+h.length+4)
}

// objects is an array of references.
type objects struct {
	at uint64 // of the first element
	n  uint64
}

// objectArray returns the array of references at addr.
func (h *heap) objectArray(addr uint64) (objects, bool) {
	n, ok := h.count(addr)
	size := h.refSize()
	a := objects{(addr + h.length + 4 + size - 1) &^ (size - 1), n}
	return a, ok && n <= maxTable/size && h.span.has(a.at) && h.span.end-a.at >= n*size
}

// element returns the address of an array's element.
func (h *heap) element(a objects, i uint64) (uint64, bool) {
	if i >= a.n {
		return 0, false
	}
	return h.field(a.at + i*h.refSize())
}

// maxText bounds texts, in bytes.
const maxText = 4096

// text reads the string at addr.
func (h *heap) text(addr uint64) (string, bool) {
	hub, ok := h.hub(addr)
	if !ok || hub != h.stringHub || h.chars == 0 {
		return "", false
	}
	at, ok := h.field(addr + h.chars)
	if !ok {
		return "", false
	}
	// The coder, 1 for two bytes a character, follows the reference and the hash (java.lang.String).
	coder, ok := number(h, addr+h.chars+h.refSize()+4, 1)
	if !ok {
		return "", false
	}
	return h.characters(at, coder == 1)
}

// characters returns the text in a byte array, with two bytes a character or one.
func (h *heap) characters(at uint64, two bool) (string, bool) {
	b, ok := h.small(at)
	if !ok {
		return "", false
	}
	if two && len(b)%2 == 0 {
		u := make([]uint16, len(b)/2)
		for i := range u {
			u[i] = binary.LittleEndian.Uint16(b[2*i:])
		}
		return string(utf16.Decode(u)), true
	}
	if bytes.IndexFunc(b, func(r rune) bool { return r >= 0x80 }) < 0 {
		return string(b), true
	}
	r := make([]rune, len(b))
	for i := range b {
		r[i] = rune(b[i])
	}
	return string(r), true
}

// small reads a short byte array.
func (h *heap) small(addr uint64) ([]byte, bool) {
	hub, ok1 := h.hub(addr)
	n, ok2 := h.count(addr)
	if !ok1 || !ok2 || hub != h.bytesHub || n > maxText {
		return nil, false
	}
	b := make([]byte, n)
	return b, h.bytes(b, addr+h.length+4)
}

// learnStrings finds out what strings look like, from the elements of an array that holds nothing
// else: the first reference in each is to its characters.
func (h *heap) learnStrings(a objects) bool {
	const looked = 64
	hubs, offset := uint64(0), uint64(0)
	first := uint64(8)
	if !h.wide {
		first = 4
	}
	for i, seen := uint64(0), 0; i < min(a.n, 4*looked) && seen < looked; i++ {
		at, ok := h.element(a, i)
		if !ok {
			continue // the first may be null
		}
		seen++
		hub, ok := h.hub(at)
		if !ok || hubs != 0 && hub != hubs {
			return false
		}
		hubs = hub
		for off := first; off <= 24; off += h.refSize() {
			if p, ok := h.field(at + off); ok {
				if hub, ok := h.hub(p); ok && hub == h.bytesHub {
					if offset != 0 && offset != off {
						return false
					}
					offset = off
					break
				}
			}
		}
	}
	h.stringHub, h.chars = hubs, offset
	return offset != 0
}
