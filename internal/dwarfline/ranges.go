package dwarfline

// span is the half-open range [lo, hi) of addresses.
type span struct{ lo, hi uint64 }

// budget bounds the work spent on range lists: many entries of a hostile file may share one long
// list.
type budget struct{ left int }

func (g *budget) spend() bool {
	g.left--
	return g.left >= 0
}

// spans appends the address ranges of a DIE to out. Ranges at address 0 belong to functions that
// the linker dropped.
func (d *Data) spans(u *unit, e *die, g *budget, out []span) []span {
	add := func(lo, hi uint64) {
		if lo != 0 && lo < hi {
			out = append(out, span{lo, hi})
		}
	}
	if e.ranges.form != 0 {
		if u.version >= 5 {
			d.rangeList5(u, e.ranges, g, add)
		} else {
			d.rangeList4(u, e.ranges, g, add)
		}
		return out
	}
	low, ok := d.addr(u, e.low)
	if !ok || e.high.form == 0 {
		return out
	}
	if high, ok := d.addr(u, e.high); ok {
		add(low, high)
	} else {
		add(low, low+e.high.v)
	}
	return out
}

// rangeList4 reads .debug_ranges: pairs relative to a base, ended by zeros.
func (d *Data) rangeList4(u *unit, v value, g *budget, add func(lo, hi uint64)) {
	b := &d.cur.ranges
	b.seek(v.v, d.sect.ranges.size)
	base := u.low
	escape := ^uint64(0)
	if u.addrSize == 4 {
		escape = 0xffffffff
	}
	for g.spend() {
		lo, hi := b.uint(u.addrSize), b.uint(u.addrSize)
		switch {
		case b.bad || lo == 0 && hi == 0:
			return
		case lo == escape:
			base = hi
		default:
			add(base+lo, base+hi)
		}
	}
}

// rangeList5 reads .debug_rnglists (DWARF 5, 2.17.3).
func (d *Data) rangeList5(u *unit, v value, g *budget, add func(lo, hi uint64)) {
	b, size := &d.cur.rnglists, d.sect.rnglists.size
	off := v.v
	if v.form == formRnglistx {
		each := uint64(4)
		if u.wide {
			each = 8
		}
		if v.v > size {
			return
		}
		b.seek(u.rngBase+v.v*each, size)
		off = u.rngBase + b.offset(u.wide)
		if b.bad {
			return
		}
	}
	const (
		endOfList    = 0
		baseAddressx = 1
		startxEndx   = 2
		startxLength = 3
		offsetPair   = 4
		baseAddress  = 5
		startEnd     = 6
		startLength  = 7
	)
	b.seek(off, size)
	base := u.low
	for g.spend() && !b.bad {
		switch b.u8() {
		case endOfList:
			return
		case baseAddressx:
			base, _ = d.indexedAddr(u, b.uleb())
		case startxEndx:
			lo, ok1 := d.indexedAddr(u, b.uleb())
			hi, ok2 := d.indexedAddr(u, b.uleb())
			if ok1 && ok2 && !b.bad {
				add(lo, hi)
			}
		case startxLength:
			lo, ok := d.indexedAddr(u, b.uleb())
			n := b.uleb()
			if ok && !b.bad {
				add(lo, lo+n)
			}
		case offsetPair:
			lo, hi := b.uleb(), b.uleb()
			if !b.bad && base != 0 {
				add(base+lo, base+hi)
			}
		case baseAddress:
			base = b.uint(u.addrSize)
		case startEnd:
			lo, hi := b.uint(u.addrSize), b.uint(u.addrSize)
			if !b.bad {
				add(lo, hi)
			}
		case startLength:
			lo, n := b.uint(u.addrSize), b.uleb()
			if !b.bad {
				add(lo, lo+n)
			}
		default:
			return
		}
	}
}
