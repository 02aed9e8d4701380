package dwarfline

// readAranges reads .debug_aranges for the units that need it: those whose root does not list the
// addresses of their code, as in DWARF 2, which could not express more than one range. It calls add
// with the unit's offset in .debug_info.
func (d *Data) readAranges(section Section, g *budget, add func(unit uint64, s span)) {
	h := buf{s: &section, order: d.order}
	for next := uint64(0); next < section.size && g.spend(); {
		start := next
		h.seek(start, section.size)
		n, wide := h.length()
		if h.bad || n > section.size-h.off {
			return
		}
		next = h.off + n
		h.limit(next)
		h.u16() // version
		info := h.offset(wide)
		size := h.u8()
		h.u8() // segment size
		if size != 4 && size != 8 {
			continue
		}
		// The first pair is aligned to its own size, counted from the header.
		pair := 2 * uint64(size)
		h.jump(start + (h.off-start+pair-1)/pair*pair)
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
