package dwarfline

import "unsafe"

// Memory returns about how many bytes of memory d takes.
func (d *Data) Memory() int {
	n := len(d.units)*int(unsafe.Sizeof(unit{})) + len(d.index)*int(unsafe.Sizeof(unitSpan{}))
	s := &d.sect
	for _, s := range []*Section{&s.info, &s.abbrev, &s.line, &s.str, &s.lineStr, &s.strOffsets, &s.addr, &s.ranges, &s.rnglists} {
		n += len(s.mem)
	}
	for _, b := range d.cur.all() {
		n += cap(b.own)
	}
	const piece, entry = 24, 64 // of unitCode, and of a map
	return n + d.loaded*piece + d.abbrevKept*int(unsafe.Sizeof(attrSpec{})) + (len(d.names)+len(d.scopes))*entry
}

// Forget frees what look-ups have read of units. The next ones read it again.
func (d *Data) Forget() {
	if d.loaded == 0 && d.abbrevKept == 0 {
		return
	}
	for i := range d.units {
		d.units[i].code, d.units[i].abbrevs = nil, nil
	}
	d.abbrevTables, d.names, d.scopes = map[uint64]*abbrevs{}, map[uint64]subprogram{}, map[uint64]uint64{}
	d.loaded, d.abbrevKept, d.abbrevWork = 0, 0, 0
	d.cur.drop()
}
