package ehframe

import (
	"encoding/binary"
	"sort"
)

// index finds the entry of an address: the table in .eh_frame_hdr if there is
// one, else a list made by reading the section through once.
type index struct {
	table []byte // pairs of signed 32-bit offsets from hdr: function, entry
	hdr   uint64 // what they are relative to
	list  []place
	whole bool // list is complete
}

type place struct {
	start uint64
	off   uint64
}

// maxEntries bounds the list: Chromium has some 700,000 functions.
const maxEntries = 8 << 20

// find gives the offset in the section of the entry with the greatest start that
// is not above addr.
func (f *frames) find(addr uint64) (off uint64, ok bool) {
	x := &f.index
	if x.table != nil {
		n := len(x.table) / 8
		want := int64(addr - x.hdr)
		lo, hi := 0, n
		for lo < hi {
			mid := int(uint(lo+hi) >> 1)
			if int64(int32(binary.LittleEndian.Uint32(x.table[mid*8:]))) <= want {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if lo == 0 {
			return 0, false
		}
		entry := x.hdr + uint64(int64(int32(binary.LittleEndian.Uint32(x.table[lo*8-4:]))))
		return entry - f.addr, true
	}
	if !x.whole {
		f.scan()
	}
	i := sort.Search(len(x.list), func(i int) bool { return x.list[i].start > addr })
	if i == 0 {
		return 0, false
	}
	return x.list[i-1].off, true
}

// scan makes the list. Damaged entries are left out.
func (f *frames) scan() {
	f.index.whole = true
	for off := uint64(0); len(f.index.list) < maxEntries; {
		e, isCIE, next, err := f.fdeAt(off)
		if next <= off {
			break // the end, or a length that cannot be trusted
		}
		// A zero length ends an .eh_frame, but linkers may leave one between
		// the parts of several object files.
		if err == nil && !isCIE && e.end > e.start && e.start != 0 {
			f.index.list = append(f.index.list, place{e.start, off})
		}
		off = next
	}
	sort.Slice(f.index.list, func(i, j int) bool { return f.index.list[i].start < f.index.list[j].start })
}

// parseHeader reads .eh_frame_hdr, which lies at addr. It gives the address of
// .eh_frame, and the sorted table if it is of the only kind that linkers make.
func parseHeader(b []byte, addr uint64, wide bool) (ehFrame uint64, table []byte, ok bool) {
	r := reader{b: b}
	version, framePtr, countEnc, tableEnc := r.u8(), r.u8(), r.u8(), r.u8()
	if r.bad || version != 1 {
		return 0, nil, false
	}
	enc := pointerContext{base: addr, data: addr, wide: wide}
	ehFrame, err := enc.read(&r, framePtr)
	if err != nil {
		return 0, nil, false
	}
	const datarelSdata4 = 0x3b
	if countEnc == encOmit || tableEnc != datarelSdata4 {
		return ehFrame, nil, true
	}
	count, err := enc.read(&r, countEnc)
	if err != nil || count == 0 {
		return ehFrame, nil, true
	}
	count = min(count, uint64(len(b)-r.pos)/8)
	return ehFrame, r.take(count * 8), true
}
