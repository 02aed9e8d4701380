package objfile

import "debug/elf"

const maxDynamic = 1 << 16 // bytes of the dynamic section

// Dynamic returns the entries of the dynamic section that have one value each.
func (f *File) Dynamic() map[elf.DynTag]uint64 {
	d := map[elf.DynTag]uint64{}
	for i := range f.Segments {
		s := &f.Segments[i]
		if s.Type != elf.PT_DYNAMIC {
			continue
		}
		b, err := f.Range(s.Off, min(s.Filesz, maxDynamic), maxDynamic)
		if err != nil {
			return d
		}
		w := 4
		if f.Wide() {
			w = 8
		}
		for ; len(b) >= 2*w; b = b[2*w:] {
			var tag, val uint64
			if f.Wide() {
				tag, val = f.Order.Uint64(b), f.Order.Uint64(b[8:])
			} else {
				tag, val = uint64(f.Order.Uint32(b)), uint64(f.Order.Uint32(b[4:]))
			}
			if tag == 0 {
				break
			}
			if tag < 1<<31 {
				d[elf.DynTag(tag)] = val
			}
		}
	}
	return d
}
