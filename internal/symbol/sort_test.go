package symbol

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSortEntries(t *testing.T) {
	for _, n := range []int{0, 1, 2, radixMin - 1, radixMin, 5000, 70000} {
		for _, mask := range []uint64{0, 0xff, 0xffffff, 1<<40 - 1, 1<<64 - 1} {
			r := rand.New(rand.NewPCG(uint64(n), mask))
			syms := make([]entry, n)
			for i := range syms {
				syms[i] = entry{addr: r.Uint64() & mask, size: r.Uint32() & 7, rank: uint8(r.Uint32() & 3), name: 1}
			}
			want := slices.Clone(syms)
			slices.SortFunc(want, compareEntries)
			if got := sortEntries(syms); !slices.Equal(got, want) {
				t.Errorf("%d symbols below %#x are not in order", n, mask)
			}
		}
	}
}

func BenchmarkSortEntries(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	syms := make([]entry, 57000)
	for i := range syms {
		syms[i] = entry{addr: 0x400000 + uint64(r.Uint32N(16<<20))&^15, size: r.Uint32() & 0xfff}
	}
	work := make([]entry, len(syms))
	for b.Loop() {
		copy(work, syms)
		sortEntries(work)
	}
}
