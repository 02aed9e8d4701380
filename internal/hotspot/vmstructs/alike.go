package vmstructs

import (
	"maps"
	"slices"
	"weak"
)

// alike holds what VMs of the same library have in common, as long as there are such VMs: some 2 MB
// for each library. The data that a VM published is compared by content and not shared by the
// library's identity, because a VM that is still starting, or is hostile, would then pass its data
// to all others.
type alike struct {
	tables []weak.Pointer[Published]
	flags  []weak.Pointer[flagTable]
}

// published returns the tables of another VM if they are equal to p, else p.
func (f *Finder) published(p *Published) *Published {
	if f == nil {
		return p
	}
	return intern(&f.alike.tables, p, func(a, b *Published) bool {
		return maps.Equal(a.Sizes, b.Sizes) && maps.Equal(a.Ints, b.Ints) && maps.Equal(a.Longs, b.Longs) && maps.Equal(a.Fields, b.Fields)
	})
}

// flags returns the flags of another VM if they are equal to t, else t.
func (f *Finder) flags(t *flagTable) *flagTable {
	if f == nil {
		return t
	}
	return intern(&f.alike.flags, t, func(a, b *flagTable) bool { return maps.Equal(a.byName, b.byName) })
}

// maxAlike bounds how many different values are compared.
const maxAlike = 64

// intern returns a value equal to v that is still in use, else v, which it remembers.
func intern[T any](known *[]weak.Pointer[T], v *T, same func(a, b *T) bool) *T {
	*known = slices.DeleteFunc(*known, func(w weak.Pointer[T]) bool { return w.Value() == nil })
	for _, w := range *known {
		if k := w.Value(); k != nil && same(k, v) {
			return k
		}
	}
	if len(*known) < maxAlike {
		*known = append(*known, weak.Make(v))
	}
	return v
}
