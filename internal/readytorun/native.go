package readytorun

import (
	"encoding/binary"
	"iter"
)

// nativeArray is a sparse array as images have them: a tree of bits for each sixteen elements
// (src/coreclr/vm/nativeformatreader.h: NativeArray).
type nativeArray struct {
	b     []byte
	base  uint32 // of the index, to which its entries are relative
	count uint32
	wide  uint32 // bytes of an entry of the index
}

const nativeBlock = 16

func openNativeArray(b []byte) nativeArray {
	v, base, ok := nativeUnsigned(b, 0)
	if !ok || v&3 == 3 {
		return nativeArray{}
	}
	return nativeArray{b: b, base: base, count: v >> 2, wide: 1 << (v & 3)}
}

// element returns where an element is; it is false if the array has none at that index.
func (a nativeArray) element(i uint32) (uint32, bool) {
	if i >= a.count {
		return 0, false
	}
	entry, ok := indexEntry(a.b, a.base, a.wide, i/nativeBlock)
	if !ok {
		return 0, false
	}
	offset := a.base + entry
	for bit := uint32(nativeBlock / 2); bit > 0; bit /= 2 {
		v, next, ok := nativeUnsigned(a.b, offset)
		switch {
		case !ok:
			return 0, false
		case i&bit != 0 && v&2 != 0:
			offset += v >> 2
		case i&bit == 0 && v&1 != 0:
			offset = next
		case v&3 == 0 && v>>2 == i%nativeBlock: // the only one below here
			return next, true
		default:
			return 0, false
		}
	}
	return offset, true
}

// indexEntry reads entry i, of wide bytes, of an index.
func indexEntry(b []byte, base, wide, i uint32) (uint32, bool) {
	at := uint64(base) + uint64(i)*uint64(wide)
	if at+uint64(wide) > uint64(len(b)) {
		return 0, false
	}
	var entry [4]byte
	copy(entry[:], b[at:at+uint64(wide)])
	return binary.LittleEndian.Uint32(entry[:]), true
}

// hashEntries returns where the entries of a hash table are (NativeHashtable of the same file): an index
// says where each bucket begins, in which an entry is a byte of its hash and how far away it is.
func hashEntries(b []byte) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if len(b) == 0 || b[0]&3 == 3 || b[0]>>2 > 24 {
			return
		}
		const base = 1
		wide, buckets := uint32(1)<<(b[0]&3), uint32(1)<<(b[0]>>2)
		start, ok := indexEntry(b, base, wide, 0)
		for i := uint32(1); ok && i <= buckets; i++ {
			var end uint32
			// Buckets follow each other, so that nothing is read twice.
			if end, ok = indexEntry(b, base, wide, i); !ok || end < start {
				return
			}
			for at := base + start; at < base+end; {
				delta, next, ok := nativeSigned(b, at+1)
				entry := int64(at) + 1 + int64(delta)
				if !ok || entry < 0 || entry >= int64(len(b)) || !yield(uint32(entry)) {
					return
				}
				at = next
			}
			start = end
		}
	}
}

// nativeUnsigned reads a number of one to five bytes, whose lowest bits say how many, and returns
// where it ends.
func nativeUnsigned(b []byte, at uint32) (v, end uint32, ok bool) {
	word, n, ok := nativeNumber(b, at)
	if n < 5 {
		word >>= n
	}
	return word, at + n, ok
}

// nativeSigned does the same for a number that may be negative.
func nativeSigned(b []byte, at uint32) (v int32, end uint32, ok bool) {
	word, n, ok := nativeNumber(b, at)
	v = int32(word)
	if n < 5 {
		v = int32(word<<(32-8*n)) >> (32 - 7*n)
	}
	return v, at + n, ok
}

// nativeNumber returns the bytes of a number, with those bits, and how many they are. Of five, the first
// only says so.
func nativeNumber(b []byte, at uint32) (word, n uint32, ok bool) {
	if uint64(at) >= uint64(len(b)) {
		return 0, 0, false
	}
	n = 1
	for n <= 4 && b[at]>>(n-1)&1 != 0 {
		n++
	}
	if uint64(at)+uint64(n) > uint64(len(b)) || n == 5 && b[at]&16 != 0 {
		return 0, 0, false
	}
	var bytes [4]byte
	if n == 5 {
		copy(bytes[:], b[at+1:])
	} else {
		copy(bytes[:n], b[at:])
	}
	return binary.LittleEndian.Uint32(bytes[:]), n, true
}
