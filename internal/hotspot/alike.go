package hotspot

import (
	"maps"
	"slices"
	"weak"
)

// alike is what VMs of the same library have in common, as long as there are such VMs: some
// 2 MB for each library. What a VM published is compared with it and not taken from it by the
// library's identity: a VM that is still starting, or is hostile, would give it to all others.
type alike struct {
	tables []weak.Pointer[published]
	flags  []weak.Pointer[flagTable]
	room   *standingRoom
}

// published gives tables of another VM that are the same, else these.
func (f *Finder) published(p *published) *published {
	if f == nil {
		return p
	}
	return intern(&f.alike.tables, p, func(a, b *published) bool {
		return maps.Equal(a.sizes, b.sizes) && maps.Equal(a.ints, b.ints) && maps.Equal(a.longs, b.longs) && maps.Equal(a.fields, b.fields)
	})
}

// flags gives flags of another VM that are the same, else these.
func (f *Finder) flags(t *flagTable) *flagTable {
	if f == nil {
		return t
	}
	return intern(&f.alike.flags, t, func(a, b *flagTable) bool { return maps.Equal(a.byName, b.byName) })
}

// standing gives the room for looking at places, which one VM uses at a time.
func (f *Finder) standing() *standingRoom {
	if f == nil {
		return &standingRoom{}
	}
	if f.alike.room == nil {
		f.alike.room = &standingRoom{}
	}
	return f.alike.room
}

// maxAlike bounds how many different ones are compared.
const maxAlike = 64

// intern gives what is the same as v and still in use, else v, which it remembers.
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
