package dwarfline

import (
	"cmp"
	"path"
	"slices"
	"sort"
)

const maxRows = 8 << 20 // of one unit

// row is the source position of the code from addr on, up to the next row.
type row struct {
	addr       uint64
	file, line uint32
}

// sequence is a run of rows with rising addresses, up to end.
type sequence struct {
	span
	first, last int32
}

// fileName is a file or directory as stored in the table. Names are read on demand: many entries
// may point at one long string.
type fileName struct {
	name value // of formString: an offset in .debug_line
	dir  uint32
}

// lineTable is the result of a unit's line program.
type lineTable struct {
	rows      []row
	sequences []sequence // sorted by lo
	unit      *unit
	dirs      []fileName
	files     []fileName
	paths     map[uint32]string
	// discriminators are those of the rows, nil unless Data.Discriminators
	discriminators []uint32
}

func (t *lineTable) size() int {
	if t == nil {
		return 0
	}
	return len(t.rows) + len(t.files) + len(t.discriminators)/4
}

// find returns the row of the code at addr and its discriminator.
func (t *lineTable) find(addr uint64) (r row, discriminator uint32, ok bool) {
	if t == nil {
		return row{}, 0, false
	}
	i := sort.Search(len(t.sequences), func(i int) bool { return t.sequences[i].lo > addr }) - 1
	if i < 0 || addr >= t.sequences[i].hi {
		return row{}, 0, false
	}
	s := t.sequences[i]
	rows := t.rows[s.first:s.last]
	j := sort.Search(len(rows), func(j int) bool { return rows[j].addr > addr }) - 1
	if j < 0 {
		return row{}, 0, false
	}
	if at := int(s.first) + j; at < len(t.discriminators) {
		discriminator = t.discriminators[at]
	}
	return rows[j], discriminator, true
}

// file returns the path of a file by its number, "" if there is no such file.
func (d *Data) file(t *lineTable, n uint32) string {
	if t == nil || int64(n) >= int64(len(t.files)) {
		return ""
	}
	if p, ok := t.paths[n]; ok {
		return p
	}
	f := t.files[n]
	p := d.lineString(t.unit, f.name)
	if p != "" && !path.IsAbs(p) {
		dir := ""
		if int64(f.dir) < int64(len(t.dirs)) {
			dir = d.lineString(t.unit, t.dirs[f.dir].name)
		}
		if !path.IsAbs(dir) {
			dir = path.Join(d.str(t.unit, t.unit.compDir), dir)
		}
		p = path.Join(dir, p)
	}
	if len(t.paths) >= maxNamesKept {
		clear(t.paths)
	}
	t.paths[n] = p
	return p
}

// lineString is str for the values of a line table.
func (d *Data) lineString(u *unit, v value) string {
	if v.form == formString {
		return d.sect.line.text(v.v)
	}
	return d.str(u, v)
}

// readLines runs the unit's line program (DWARF 5, section 6.2). For a damaged program it returns
// what it could read.
func (d *Data) readLines(u *unit) *lineTable {
	t := &lineTable{unit: u, paths: map[uint32]string{}}
	b := &d.cur.line
	b.seek(u.stmtList, d.sect.line.size)
	n, wide := b.length()
	if b.bad || n > b.end-b.off {
		return t
	}
	end := b.off + n
	b.limit(end)
	p := program{addrSize: u.addrSize}
	version := b.u16()
	if version < 2 || version > 5 {
		return t
	}
	if version >= 5 {
		p.addrSize = b.u8()
		b.u8() // segment selectors are not used anywhere
	}
	headLen := b.offset(wide)
	if b.bad || headLen > end-b.off {
		return t
	}
	start := b.off + headLen
	p.minInst = uint64(b.u8())
	if version >= 4 {
		b.u8() // operations per instruction: VLIW only
	}
	b.u8() // default is_stmt
	p.lineBase, p.lineRange, p.opcodeBase = int64(int8(b.u8())), b.u8(), b.u8()
	if b.bad || p.lineRange == 0 || p.opcodeBase == 0 {
		return t
	}
	p.lengths = slices.Clone(b.take(uint64(p.opcodeBase) - 1))
	if b.bad {
		return t
	}
	b.limit(start)
	if version >= 5 {
		d.fileTables5(t, u, b, wide)
	} else {
		fileTables4(t, b)
	}
	b.seek(start, end)
	p.discriminators = d.Discriminators
	p.stopped = d.stopped
	p.run(t, b)
	slices.SortStableFunc(t.sequences, func(a, b sequence) int { return cmp.Compare(a.lo, b.lo) })
	return t
}

// fileTables4 reads the tables up to DWARF 4; files are numbered from 1, directory 0 is the
// compiler's working directory.
func fileTables4(t *lineTable, b *buf) {
	t.dirs = append(t.dirs, fileName{})
	next := func() (fileName, bool) {
		at := b.off
		b.skipString()
		return fileName{name: value{formString, at}}, !b.bad && b.off > at+1
	}
	for {
		f, ok := next()
		if !ok {
			break
		}
		t.dirs = append(t.dirs, f)
	}
	t.files = append(t.files, fileName{})
	for {
		f, ok := next()
		if !ok {
			return
		}
		f.dir = uint32(b.uleb())
		b.uleb() // time
		b.uleb() // size
		t.files = append(t.files, f)
	}
}

// fileTables5 reads the tables of DWARF 5, which describe their own format.
func (d *Data) fileTables5(t *lineTable, u *unit, b *buf, wide bool) {
	lu := *u
	lu.wide = wide
	read := func(add func(fileName)) {
		const contentPath, contentDir = 1, 2
		var format [16][2]uint64
		cols := int(b.u8())
		if cols > len(format) {
			b.bad = true
			return
		}
		for i := range cols {
			format[i] = [2]uint64{b.uleb(), b.uleb()}
		}
		// Each entry must consume bytes, or a false count would never end.
		for count := b.uleb(); count > 0 && !b.bad; count-- {
			at := b.off
			var f fileName
			for _, c := range format[:cols] {
				if c[1] >= 1<<16 {
					b.bad = true
					return
				}
				v := b.form(uint16(c[1]), 0, &lu)
				switch c[0] {
				case contentPath:
					f.name = v
				case contentDir:
					f.dir = uint32(v.v)
				}
			}
			if b.bad || b.off == at {
				b.bad = true
				return
			}
			add(f)
		}
	}
	read(func(f fileName) { t.dirs = append(t.dirs, f) })
	if !b.bad {
		read(func(f fileName) { t.files = append(t.files, f) })
	}
}

// program is a line program's header.
type program struct {
	minInst    uint64
	lineBase   int64
	lineRange  uint8
	opcodeBase uint8
	addrSize   uint8
	lengths    []byte

	discriminators bool // are kept
	stopped        func() bool
}

// run executes the program and collects its sequences.
func (p *program) run(t *lineTable, b *buf) {
	const (
		opCopy, opAdvancePC, opAdvanceLine, opSetFile = 1, 2, 3, 4
		opConstAddPC, opFixedAdvancePC                = 8, 9
		extEndSequence, extSetAddress, extDefineFile  = 1, 2, 3
		extSetDiscriminator                           = 4
	)
	first := 0
	cur := row{file: 1, line: 1}
	discriminator := uint32(0) // of the next row only
	emit := func() {
		// Addresses in a sequence only rise; a lower one means damage. If several rows have one
		// address, only the last covers code.
		if n := len(t.rows); n > first {
			if cur.addr < t.rows[n-1].addr {
				return
			}
			if cur.addr == t.rows[n-1].addr {
				t.rows[n-1] = cur
				if p.discriminators {
					t.discriminators[n-1] = discriminator
				}
				discriminator = 0
				return
			}
		}
		t.rows = append(t.rows, cur)
		if p.discriminators {
			t.discriminators = append(t.discriminators, discriminator)
		}
		discriminator = 0
	}
	for !b.bad && b.off < b.end && len(t.rows) < maxRows && !p.stopped() {
		op := b.u8()
		switch {
		case op >= p.opcodeBase:
			adj := op - p.opcodeBase
			cur.addr += uint64(adj/p.lineRange) * p.minInst
			cur.line += uint32(p.lineBase + int64(adj%p.lineRange))
			emit()
		case op == 0:
			n := b.uleb()
			if b.bad || n > b.end-b.off {
				return
			}
			end := b.off + n
			if n == 0 {
				continue
			}
			switch b.u8() {
			case extEndSequence:
				// A sequence at 0 is code that the linker dropped.
				if len(t.rows) > first && t.rows[first].addr != 0 && cur.addr > t.rows[first].addr {
					t.sequences = append(t.sequences, sequence{span{t.rows[first].addr, cur.addr}, int32(first), int32(len(t.rows))})
				} else {
					t.rows = t.rows[:first]
					t.discriminators = t.discriminators[:min(first, len(t.discriminators))]
				}
				first = len(t.rows)
				cur = row{file: 1, line: 1}
				discriminator = 0
			case extSetDiscriminator:
				discriminator = uint32(b.uleb())
			case extSetAddress:
				if n-1 == 4 || n-1 == 8 {
					cur.addr = b.uint(uint8(n - 1))
				}
			case extDefineFile:
				at := b.off
				b.skipString()
				t.files = append(t.files, fileName{name: value{formString, at}, dir: uint32(b.uleb())})
			}
			b.jump(end)
		case op == opCopy:
			emit()
		case op == opAdvancePC:
			cur.addr += b.uleb() * p.minInst
		case op == opAdvanceLine:
			cur.line += uint32(b.sleb())
		case op == opSetFile:
			cur.file = uint32(b.uleb())
		case op == opConstAddPC:
			cur.addr += uint64((255-p.opcodeBase)/p.lineRange) * p.minInst
		case op == opFixedAdvancePC:
			cur.addr += uint64(b.u16())
		default: // set_column and others: their operands are LEB128s
			n := byte(0)
			if int(op-1) < len(p.lengths) {
				n = p.lengths[op-1]
			}
			for range n {
				b.uleb()
			}
		}
	}
	t.rows = t.rows[:first] // a sequence without an end is dropped
	t.discriminators = t.discriminators[:min(first, len(t.discriminators))]
}
