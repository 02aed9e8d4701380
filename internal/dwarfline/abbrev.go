package dwarfline

// attrSpec is one attribute of an abbreviation.
type attrSpec struct {
	at, form uint16
	implicit int64
}

// abbrev is the layout of a debugging entry.
type abbrev struct {
	tag      uint16
	children bool
	attrs    []attrSpec
}

// abbrevs are a unit's abbreviations. Compilers number them from 1 without gaps; others are in a
// map.
type abbrevs struct {
	dense  []abbrev
	sparse map[uint64]*abbrev
}

func (a *abbrevs) get(code uint64) *abbrev {
	if code-1 < uint64(len(a.dense)) {
		return &a.dense[code-1]
	}
	return a.sparse[code]
}

const (
	maxAbbrevKept = 1 << 20  // attributes kept in memory
	maxAbbrevWork = 32 << 20 // attributes parsed in total, about a second's work
)

// abbrevTable returns the whole table at off.
func (d *Data) abbrevTable(off uint64) *abbrevs {
	if a, ok := d.abbrevTables[off]; ok {
		return a
	}
	if d.abbrevKept > maxAbbrevKept {
		clear(d.abbrevTables)
		d.abbrevKept = 0
		for i := range d.units {
			d.units[i].abbrevs = nil
		}
	}
	before := d.abbrevWork
	a := d.parseAbbrevs(off, 0)
	d.abbrevKept += d.abbrevWork - before + 1
	d.abbrevTables[off] = a
	return a
}

// parseAbbrevs reads the table at off, up to the abbreviation with the code last; 0 reads all of
// it.
func (d *Data) parseAbbrevs(off, last uint64) *abbrevs {
	b := &d.cur.abbrev
	b.seek(off, d.sect.abbrev.size)
	a := &abbrevs{}
	for d.abbrevWork < maxAbbrevWork {
		code := b.uleb()
		if code == 0 || b.bad {
			break
		}
		tag := b.uleb()
		ab := abbrev{children: b.u8() != 0}
		if tag < 1<<16 {
			ab.tag = uint16(tag)
		}
		for d.abbrevWork++; d.abbrevWork < maxAbbrevWork; d.abbrevWork++ {
			at, form := b.uleb(), b.uleb()
			if b.bad || at == 0 && form == 0 {
				break
			}
			s := attrSpec{form: 0xffff}
			if at < 1<<16 {
				s.at = uint16(at)
			}
			if form < 1<<16 {
				s.form = uint16(form)
			}
			if form == formImplicitConst {
				s.implicit = b.sleb()
			}
			ab.attrs = append(ab.attrs, s)
		}
		if b.bad {
			break
		}
		if code == uint64(len(a.dense))+1 {
			a.dense = append(a.dense, ab)
		} else {
			if a.sparse == nil {
				a.sparse = map[uint64]*abbrev{}
			}
			a.sparse[code] = &ab
		}
		if code == last {
			break
		}
	}
	return a
}
