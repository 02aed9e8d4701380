package symbol

import (
	"cmp"
	"math/bits"
	"slices"
)

const (
	radixBits = 11
	radixMin  = 512 // fewer are sorted by comparing
)

// sortEntries sorts symbols by address; at one address, the largest first, which encloses the
// others, then by rank. A library has tens of thousands of symbols, and candid waits for them at
// the first frame in it. A radix sort takes a fifth of the time of a comparison sort.
func sortEntries(syms []entry) []entry {
	if len(syms) >= radixMin {
		syms = radixByAddress(syms)
		for i := 0; i < len(syms); {
			j := i + 1
			for j < len(syms) && syms[j].addr == syms[i].addr {
				j++
			}
			if j-i > 1 {
				slices.SortFunc(syms[i:j], compareEntries)
			}
			i = j
		}
		return syms
	}
	slices.SortFunc(syms, compareEntries)
	return syms
}

func compareEntries(a, b entry) int {
	if c := cmp.Compare(a.addr, b.addr); c != 0 {
		return c
	}
	if c := cmp.Compare(b.size, a.size); c != 0 {
		return c
	}
	return cmp.Compare(a.rank, b.rank)
}

// radixByAddress returns the symbols in the order of their addresses, in syms or in new memory.
func radixByAddress(syms []entry) []entry {
	lo, hi := syms[0].addr, syms[0].addr
	for i := range syms {
		lo, hi = min(lo, syms[i].addr), max(hi, syms[i].addr)
	}
	from, to := syms, make([]entry, len(syms))
	var count [1<<radixBits + 1]uint32
	for shift := 0; shift < bits.Len64(hi-lo); shift += radixBits {
		clear(count[:])
		for i := range from {
			count[(from[i].addr-lo)>>shift&(1<<radixBits-1)+1]++
		}
		for d := 1; d < len(count); d++ {
			count[d] += count[d-1]
		}
		for i := range from {
			d := (from[i].addr - lo) >> shift & (1<<radixBits - 1)
			to[count[d]] = from[i]
			count[d]++
		}
		from, to = to, from
	}
	return from
}
