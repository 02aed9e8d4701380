package dwarfline

// readAranges reads .debug_aranges for the units that need it: those whose root does not list the
// addresses of their code, as in DWARF 2, which could not express more than one range. It calls add
// with the unit's offset in .debug_info.
func (d *Data) readAranges(section []byte, g *budget, add func(unit uint64, s span)) {
	b := buf{b: section, order: d.order}
	for !b.bad && b.off < uint64(len(section)) && g.spend() {
		start := b.off
		n, wide := b.length()
		if b.bad || n > uint64(len(section))-b.off {
			return
		}
		h := buf{b: section[:b.off+n], off: b.off, order: d.order}
		b.off += n
		h.u16() // version
		info := h.offset(wide)
		size := h.u8()
		h.u8() // segment size
		if size != 4 && size != 8 {
			continue
		}
		// The first pair is aligned to its own size, counted from the header.
		pair := 2 * uint64(size)
		h.off = start + (h.off-start+pair-1)/pair*pair
		for g.spend() {
			lo, length := h.uint(size), h.uint(size)
			if h.bad || lo == 0 && length == 0 {
				break
			}
			if lo != 0 && lo+length > lo {
				add(info, span{lo, lo + length})
			}
		}
	}
}
