package symbol

import (
	"encoding/binary"
	"sort"
)

const maxHeader = 64 << 20 // bytes of .eh_frame_hdr, which has 8 of them a function

// bounds finds where functions begin and end from the unwind tables, which stripped files keep.
// Only the form that every linker writes is read: a sorted table of 32-bit offsets
// (DW_EH_PE_datarel|sdata4, LSB "Exception Frames").
type bounds struct {
	m     *image
	base  uint64 // address of .eh_frame_hdr
	table int64  // offset in the file of its pairs of offsets from base: function, FDE
	n     int
}

func openBounds(m *image) *bounds {
	s := m.Section(".eh_frame_hdr")
	if s == nil || s.Size < 12 {
		return nil
	}
	b, err := m.Range(s.Offset, 12+min(s.Size-12, 4), 16)
	if err != nil || s.Size > maxHeader || b[0] != 1 || b[2] != 0x03 || b[3] != 0x3b || m.Order != binary.LittleEndian {
		return nil
	}
	head := uint64(4)
	switch b[1] & 0x0f { // encoding of the pointer to .eh_frame
	case 0x03, 0x0b:
		head += 4
	case 0x04, 0x0c:
		head += 8
	default:
		return nil
	}
	if uint64(len(b)) < head+4 {
		return nil
	}
	n := min(uint64(m.Order.Uint32(b[head:])), (s.Size-head-4)/8)
	return &bounds{m: m, base: s.Addr, table: int64(s.Offset + head + 4), n: int(n)}
}

// at returns the addresses of the i-th function and of its FDE; 0 if they cannot be read.
func (f *bounds) at(i int, b []byte) (start, fde uint64) {
	if n, _ := f.m.ReadAt(b[:8], f.table+int64(i)*8); n < 8 {
		return 0, 0
	}
	word := func(b []byte) uint64 { return f.base + uint64(int64(int32(binary.LittleEndian.Uint32(b)))) }
	return word(b), word(b[4:])
}

// find returns the function that addr lies in.
func (f *bounds) find(addr uint64) (span, bool) {
	if f == nil {
		return span{}, false
	}
	b := make([]byte, 8)
	i := sort.Search(f.n, func(i int) bool {
		start, _ := f.at(i, b)
		return start > addr
	}) - 1
	if i < 0 {
		return span{}, false
	}
	start, fde := f.at(i, b)
	size, ok := f.length(fde)
	if !ok || addr-start >= size {
		return span{}, false
	}
	return span{start, start + size}, true
}

// length reads the pc_range of the FDE at the address.
func (f *bounds) length(fde uint64) (uint64, bool) {
	b, err := f.m.BytesAt(fde, 24)
	if err != nil {
		return 0, false
	}
	cieOff := uint64(binary.LittleEndian.Uint32(b[4:]))
	if binary.LittleEndian.Uint32(b) == 0xffffffff || cieOff == 0 {
		return 0, false
	}
	cie, err := f.m.BytesAt(fde+4-cieOff, 24)
	if err != nil {
		return 0, false
	}
	switch pointerEncoding(cie) & 0x07 {
	case 0x03: // 4 bytes
		return uint64(binary.LittleEndian.Uint32(b[12:])), true
	case 0x00, 0x04: // a word, 8 bytes
		return binary.LittleEndian.Uint64(b[16:]), true
	}
	return 0, false
}

// pointerEncoding finds the R byte of a CIE's augmentation. 4-byte addresses (all but the large
// model) are assumed if there is none that can be read.
func pointerEncoding(cie []byte) byte {
	const usual = 0x03
	if len(cie) < 24 || cie[9] != 'z' {
		return 0
	}
	end := 9
	for end < len(cie) && cie[end] != 0 {
		end++
	}
	p := end + 1
	for range 4 { // code alignment, data alignment, return register, length: LEB128
		for p < len(cie) && cie[p]&0x80 != 0 {
			p++
		}
		p++
	}
	for _, c := range cie[10:end] {
		if p >= len(cie) {
			return usual
		}
		switch c {
		case 'R':
			return cie[p]
		case 'L':
			p++
		case 'P':
			switch cie[p] & 0x07 {
			case 0x03:
				p += 5
			case 0x00, 0x04:
				p += 9
			default:
				return usual
			}
		default:
			return usual
		}
	}
	return usual
}
