package profile

import (
	"hash/maphash"

	"github.com/candid-profiler/candid/internal/memlimit"
)

// index finds a value's place in a list that only grows, in a quarter of the memory of a map, which
// would hold every value a second time.
type index[T comparable] struct {
	seed  maphash.Seed
	table []uint32 // open addressing: place+1, 0 is free
}

// place returns v's place in list, and adds v if it is new and m permits it; else it returns 0.
func (x *index[T]) place(list *[]T, v T, m *memlimit.Meter) uint32 {
	if 2*(len(*list)+1) > len(x.table) {
		x.grow(*list)
	}
	mask := uint64(len(x.table) - 1)
	h := maphash.Comparable(x.seed, v) & mask
	for ; x.table[h] != 0; h = (h + 1) & mask {
		if i := x.table[h] - 1; (*list)[i] == v {
			return i
		}
	}
	i := uint32(len(*list))
	if *list = memlimit.Append(m, *list, v); len(*list) == int(i) {
		return 0
	}
	x.table[h] = i + 1
	return i
}

func (x *index[T]) grow(list []T) {
	if x.table == nil {
		x.seed = maphash.MakeSeed()
	}
	x.table = make([]uint32, max(256, 2*len(x.table)))
	mask := uint64(len(x.table) - 1)
	for i := range list {
		h := maphash.Comparable(x.seed, list[i]) & mask
		for x.table[h] != 0 {
			h = (h + 1) & mask
		}
		x.table[h] = uint32(i) + 1
	}
}
