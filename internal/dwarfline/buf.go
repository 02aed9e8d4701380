package dwarfline

import (
	"bytes"
	"encoding/binary"
)

const (
	// firstWindow is how many bytes are read at once from a section in a file: an entry or a list of
	// ranges is mostly shorter. If reading goes on behind them, twice as many are read each time, up
	// to mostWindow.
	firstWindow = 512
	mostWindow  = 16 << 10
)

// buf reads one section forwards, from seek on. A read beyond the end sets bad, and every further
// read returns 0, so callers check once. What take returns is valid until the next read.
type buf struct {
	s     *Section
	order binary.ByteOrder
	off   uint64 // of the next byte, in the section
	end   uint64 // of what may be read, in the section
	bad   bool

	win  []byte // content of the section from base on; all of a section in memory
	base uint64
	lim  uint64 // end of what may be read from win, in the section
	own  []byte // memory for win if the section is in a file
}

// seek sets what is read next: the bytes from off up to end.
func (b *buf) seek(off, end uint64) {
	b.bad = false
	switch {
	case b.s.r == nil:
		b.win, b.base = b.s.mem, 0
	case off < b.base || off > b.base+uint64(len(b.win)):
		b.win, b.base = nil, off
	}
	b.off = off
	b.limit(end)
}

// limit sets where reading ends.
func (b *buf) limit(end uint64) {
	b.end = min(end, b.s.size)
	b.lim = min(b.base+uint64(len(b.win)), b.end)
}

// jump goes on reading at another place before the same end.
func (b *buf) jump(off uint64) {
	bad := b.bad
	b.seek(off, b.end)
	b.bad = bad
}

func (b *buf) take(n uint64) []byte {
	if b.bad || b.off > b.lim || n > b.lim-b.off {
		if !b.fill(n) {
			return nil
		}
	}
	p := b.win[b.off-b.base:][:n]
	b.off += n
	return p
}

// fill reads a piece of the section that begins at off and has at least n bytes. If that is not
// possible it sets bad.
func (b *buf) fill(n uint64) bool {
	if b.bad = b.bad || b.s.r == nil || b.off > b.end || n > b.end-b.off || n > mostWindow; b.bad {
		return false
	}
	size := uint64(max(firstWindow, min(2*len(b.win), mostWindow)))
	size = min(max(size, n), b.end-b.off)
	if uint64(cap(b.own)) < size {
		b.own = make([]byte, size)
	}
	got, _ := b.s.r.ReadAt(b.own[:size], int64(b.off))
	b.win, b.base = b.own[:got], b.off
	b.lim = b.off + uint64(got)
	b.bad = uint64(got) < n
	return !b.bad
}

// skip goes on behind the next n bytes.
func (b *buf) skip(n uint64) {
	if b.bad || b.off > b.end || n > b.end-b.off {
		b.bad = true
		return
	}
	b.jump(b.off + n)
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
	for {
		if b.bad || b.off >= b.lim {
			if !b.fill(1) {
				return
			}
		}
		rest := b.win[b.off-b.base : b.lim-b.base]
		if i := bytes.IndexByte(rest, 0); i >= 0 {
			b.off += uint64(i) + 1
			return
		}
		b.off = b.lim
	}
}
