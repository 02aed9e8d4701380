package ehframe

import (
	"encoding/binary"
	"sort"
)

// index finds the entry of an address: in the table in .eh_frame_hdr if there is one, else in a
// list made by reading through the section once.
type index struct {
	table source // pairs of signed 32-bit offsets from hdr: function, entry
	n     int    // number of pairs; 0: there is no table
	hdr   uint64 // address that they are relative to
	// heads are the functions of every headPairs-th pair that look-ups have come by, and have says
	// which those are. A table that is whole in memory has none.
	heads []int32
	have  []uint64
	list  []place
	whole bool // list is complete
}

type place struct {
	start uint64
	off   uint64
}

// maxEntries bounds the list: Chromium has some 700,000 functions.
const maxEntries = 8 << 20

// find returns the offset in the section of the entry with the greatest start that is not above
// addr.
func (f *frames) find(addr uint64) (off uint64, ok bool) {
	x := &f.index
	if x.n > 0 {
		entry, ok := x.search(int64(addr - x.hdr))
		return entry - f.addr, ok
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

// headPairs is how many pairs of the table are read together.
const headPairs = 64

// search returns the address of the entry of the last function in the table that is not above want,
// relative to hdr.
func (x *index) search(want int64) (entry uint64, ok bool) {
	lo, hi := 0, x.n
	if x.table.r != nil {
		// The last group of pairs whose first is not above want.
		first, end := 0, (x.n+headPairs-1)/headPairs
		for first < end {
			mid := int(uint(first+end) >> 1)
			start, ok := x.head(mid)
			if !ok {
				return 0, false
			}
			if int64(start) <= want {
				first = mid + 1
			} else {
				end = mid
			}
		}
		if first == 0 {
			return 0, false
		}
		lo = (first - 1) * headPairs
		hi = min(lo+headPairs, x.n)
	}
	base := lo
	pairs, ok := x.table.at(uint64(lo)*8, uint64(hi-lo)*8)
	if !ok {
		return 0, false
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		pair := pairs[(mid-base)*8:]
		if int64(int32(binary.LittleEndian.Uint32(pair))) <= want {
			lo, entry = mid+1, x.hdr+uint64(int64(int32(binary.LittleEndian.Uint32(pair[4:]))))
		} else {
			hi = mid
		}
	}
	return entry, lo > 0
}

// head returns the function of the first pair of a group.
func (x *index) head(group int) (int32, bool) {
	if x.heads == nil {
		n := (x.n + headPairs - 1) / headPairs
		x.heads, x.have = make([]int32, n), make([]uint64, (n+63)/64)
	}
	if x.have[group/64]>>(group%64)&1 == 0 {
		pair, ok := x.table.at(uint64(group)*headPairs*8, 8)
		if !ok {
			return 0, false
		}
		x.heads[group] = int32(binary.LittleEndian.Uint32(pair))
		x.have[group/64] |= 1 << (group % 64)
	}
	return x.heads[group], true
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

// headerBytes is how much of .eh_frame_hdr comes before its table, at most.
const headerBytes = 4 + 2*10

// parseHeader reads the start of an .eh_frame_hdr at addr of size bytes. It returns the address of
// .eh_frame, and where the sorted table starts and how many pairs it has, if the table is of the
// only kind that linkers make.
func parseHeader(b []byte, size, addr uint64, wide bool) (ehFrame, table uint64, n int, ok bool) {
	r := reader{b: b}
	version, framePtr, countEnc, tableEnc := r.u8(), r.u8(), r.u8(), r.u8()
	if r.bad || version != 1 {
		return 0, 0, 0, false
	}
	enc := pointerContext{base: addr, data: addr, wide: wide}
	ehFrame, err := enc.read(&r, framePtr)
	if err != nil {
		return 0, 0, 0, false
	}
	const datarelSdata4 = 0x3b
	if countEnc == encOmit || tableEnc != datarelSdata4 {
		return ehFrame, 0, 0, true
	}
	count, err := enc.read(&r, countEnc)
	if err != nil || count == 0 {
		return ehFrame, 0, 0, true
	}
	return ehFrame, uint64(r.pos), int(min(count, (size-uint64(r.pos))/8)), true
}
