package dwarfline

import (
	"bytes"
	"encoding/binary"
)

// buf reads one section forwards. A read beyond the end sets bad, and every further read returns 0,
// so callers check once.
type buf struct {
	b     []byte
	off   uint64
	order binary.ByteOrder
	bad   bool
}

func (b *buf) take(n uint64) []byte {
	if b.bad || b.off > uint64(len(b.b)) || n > uint64(len(b.b))-b.off {
		b.bad = true
		return nil
	}
	p := b.b[b.off : b.off+n]
	b.off += n
	return p
}

func (b *buf) u8() uint8 {
	if p := b.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (b *buf) u16() uint16 {
	if p := b.take(2); p != nil {
		return b.order.Uint16(p)
	}
	return 0
}

func (b *buf) u32() uint32 {
	if p := b.take(4); p != nil {
		return b.order.Uint32(p)
	}
	return 0
}

func (b *buf) u64() uint64 {
	if p := b.take(8); p != nil {
		return b.order.Uint64(p)
	}
	return 0
}

// uint reads an unsigned number of n bytes, n in 1, 2, 3, 4, 8.
func (b *buf) uint(n uint8) uint64 {
	switch n {
	case 1:
		return uint64(b.u8())
	case 2:
		return uint64(b.u16())
	case 3:
		p := b.take(3)
		if p == nil {
			return 0
		}
		if b.order == binary.ByteOrder(binary.BigEndian) {
			return uint64(p[0])<<16 | uint64(p[1])<<8 | uint64(p[2])
		}
		return uint64(p[2])<<16 | uint64(p[1])<<8 | uint64(p[0])
	case 4:
		return uint64(b.u32())
	case 8:
		return b.u64()
	}
	b.bad = true
	return 0
}

// uleb and sleb read LEB128 numbers; bits beyond the 64th are dropped.
func (b *buf) uleb() uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		c := b.u8()
		if shift < 64 {
			v |= uint64(c&0x7f) << shift
		}
		if c&0x80 == 0 || b.bad {
			return v
		}
	}
}

func (b *buf) sleb() int64 {
	var v int64
	for shift := uint(0); ; shift += 7 {
		c := b.u8()
		if shift < 64 {
			v |= int64(c&0x7f) << shift
		}
		if c&0x80 == 0 || b.bad {
			if shift+7 < 64 && c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

// length reads a unit's length and reports whether offsets in it are 8 bytes.
func (b *buf) length() (n uint64, wide bool) {
	n = uint64(b.u32())
	if n == 0xffffffff {
		return b.u64(), true
	}
	if n >= 0xfffffff0 {
		b.bad = true
	}
	return n, false
}

// offset reads an offset into another section.
func (b *buf) offset(wide bool) uint64 {
	if wide {
		return b.u64()
	}
	return uint64(b.u32())
}

// skipString skips a zero-terminated string.
func (b *buf) skipString() {
	if b.bad || b.off > uint64(len(b.b)) {
		b.bad = true
		return
	}
	i := bytes.IndexByte(b.b[b.off:], 0)
	if i < 0 {
		b.bad = true
		return
	}
	b.off += uint64(i) + 1
}

const maxString = 4 << 10

// stringAt returns the zero-terminated string at off, cut at 4 KiB.
func stringAt(b []byte, off uint64) string {
	if off >= uint64(len(b)) {
		return ""
	}
	b = b[off:]
	b = b[:min(len(b), maxString)]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
