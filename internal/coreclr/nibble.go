package coreclr

// The map of nibbles of a heap of code: 32 bytes of code per nibble, eight nibbles per word of 32
// bits, the first in the highest bits. A nibble that is not 0 says that a method starts 4 times one
// less behind the start of its 32 bytes (src/coreclr/vm/nibblemapmacros.h;
// docs/design/datacontracts/ExecutionManager.md). Since .NET 10 a word that lies within one method
// may hold a pointer to that method's start instead.
const (
	nibbleBytes = 32
	wordBytes   = 8 * nibbleBytes
	firstRel    = 9 // nibbles from here on mark pointers
)

// maxNibbleWords bounds the search for the start of a method: 16 MB of code.
const maxNibbleWords = 1 << 16

// methodStart returns the start of the method, or stub, whose code contains pc or is the last one
// before it; false if there is none.
func (vm *VM) methodStart(s *section, pc uint64) (uint64, bool) {
	if pc < s.mapBase {
		return 0, false
	}
	word := func(i uint64) (uint32, bool) {
		var b [4]byte
		ok := vm.mem.Bytes(s.nibbles+4*i, b[:])
		return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24, ok
	}
	return findStart(word, s.mapBase, pc-s.mapBase, vm.lay.pointers)
}

// findStart is methodStart for a map that word reads, of code at base; off is pc's distance.
func findStart(word func(i uint64) (uint32, bool), base, off uint64, pointers bool) (uint64, bool) {
	i := off / wordBytes
	w, ok := word(i)
	if !ok {
		return 0, false
	}
	if p, is := pointed(w, base); is && pointers {
		return p, p <= base+off
	}
	slot := off / nibbleBytes % 8 // 0 is the highest
	for shift := 28 - 4*slot; ; shift += 4 {
		if n := uint64(w >> shift & 15); n != 0 && n < firstRel {
			start := i*wordBytes + (7-shift/4)*nibbleBytes + 4*(n-1)
			if start <= off {
				return base + start, true
			}
		}
		if shift == 28 {
			break
		}
	}
	for n := 0; i > 0 && n < maxNibbleWords; n++ {
		i--
		if w, ok = word(i); !ok {
			return 0, false
		}
		if w == 0 {
			continue
		}
		if p, is := pointed(w, base); is && pointers {
			return p, true
		}
		for slot := uint64(7); ; slot-- { // the last method that starts there
			if n := uint64(w >> (28 - 4*slot) & 15); n != 0 && n < firstRel {
				return base + i*wordBytes + slot*nibbleBytes + 4*(n-1), true
			}
			if slot == 0 {
				break
			}
		}
		return 0, false
	}
	return 0, false
}

// pointed decodes a word that points to the start of a method.
func pointed(w uint32, base uint64) (uint64, bool) {
	n := w & 15
	if n < firstRel || n > firstRel+3 {
		return 0, false
	}
	return base + uint64(w&^15) + 4*uint64(n-firstRel), true
}
