package ehframe

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// reader takes values off the front of bytes. Past the end it returns zeroes and sets bad, which
// callers check once.
type reader struct {
	b   []byte
	pos int
	bad bool
}

func (r *reader) more() bool { return !r.bad && r.pos < len(r.b) }

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)-r.pos) {
		r.bad = true
		return nil
	}
	p := r.b[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return p
}

func (r *reader) u8() byte {
	if r.bad || r.pos >= len(r.b) {
		r.bad = true
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

func (r *reader) u16() uint16 {
	if p := r.take(2); p != nil {
		return binary.LittleEndian.Uint16(p)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if p := r.take(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if p := r.take(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

// uleb reads an unsigned LEB128; bits above 64 are dropped.
func (r *reader) uleb() uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		c := r.u8()
		if shift < 64 {
			v |= uint64(c&0x7f) << shift
		}
		if c&0x80 == 0 || r.bad {
			return v
		}
	}
}

// sleb reads a signed LEB128.
func (r *reader) sleb() int64 {
	var v int64
	shift := uint(0)
	for {
		c := r.u8()
		if shift < 64 {
			v |= int64(c&0x7f) << shift
		}
		shift += 7
		if c&0x80 == 0 || r.bad {
			if c&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
}

// cstring reads up to a NUL.
func (r *reader) cstring() []byte {
	for i := r.pos; i < len(r.b); i++ {
		if r.b[i] == 0 {
			p := r.b[r.pos:i]
			r.pos = i + 1
			return p
		}
	}
	r.bad = true
	return nil
}

// pointerContext is what encoded pointers may be relative to.
type pointerContext struct {
	base uint64 // address of the reader's byte 0
	data uint64 // address of .eh_frame_hdr (DW_EH_PE_datarel)
	text uint64 // address of .text (DW_EH_PE_textrel)
	wide bool   // addresses have 8 bytes
}

// Pointer encodings (LSB Core, DWARF exception header encoding).
const (
	encAbsolute = 0x00
	encOmit     = 0xff
	encIndirect = 0x80
)

var errEncoding = errors.New("unknown pointer encoding")

// read takes one encoded pointer.
func (c pointerContext) read(r *reader, enc byte) (uint64, error) {
	if enc == encOmit {
		return 0, nil
	}
	at := c.base + uint64(r.pos)
	if enc&0x70 == 0x50 { // DW_EH_PE_aligned
		pad := -at & 7
		r.take(pad)
		at += pad
	}
	var v uint64
	switch enc & 0x0f {
	case 0x00: // absptr
		if c.wide {
			v = r.u64()
		} else {
			v = uint64(r.u32())
		}
	case 0x01:
		v = r.uleb()
	case 0x02:
		v = uint64(r.u16())
	case 0x03:
		v = uint64(r.u32())
	case 0x04, 0x0c:
		v = r.u64()
	case 0x09:
		v = uint64(r.sleb())
	case 0x0a:
		v = uint64(int64(int16(r.u16())))
	case 0x0b:
		v = uint64(int64(int32(r.u32())))
	default:
		return 0, fmt.Errorf("%w %#x", errEncoding, enc)
	}
	switch enc & 0x70 {
	case 0x00, 0x50:
	case 0x10: // pcrel
		v += at
	case 0x20: // textrel
		v += c.text
	case 0x30: // datarel
		v += c.data
	default:
		return 0, fmt.Errorf("%w %#x", errEncoding, enc)
	}
	if r.bad {
		return 0, fmt.Errorf("an encoded pointer ends past its record")
	}
	return v, nil
}
