// Package dwarfline finds, in DWARF 2 to 5, which source line an address belongs to and which
// functions the compiler inlined there.
//
// debug/dwarf of the standard library is not used: it allocates what the header of a line table
// asks for, whatever the file's size, and an object for every debugging entry. This package reads
// only the headers of the units at first, and of each unit only what a look-up needs.
package dwarfline

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
)

const (
	maxUnits      = 1 << 18
	maxUnitSpans  = 4 << 20 // of all units together
	maxLoaded     = 4 << 20 // rows and ranges of the units in memory, about 24 bytes each
	maxNamesKept  = 1 << 14
	maxOriginHops = 8
	maxPlaces     = 128 // for one address
)

// ErrNone means that the file has no usable line information.
var ErrNone = errors.New("no usable DWARF")

// Place is one source position. If an address has several, the first is the innermost inlined
// function, the last the function that was compiled.
type Place struct {
	Function string // linkage name if there is one, else the source name; "" if unknown
	File     string // "" if unknown
	Line     int32  // 0 if unknown
	Start    int32  // line on which the function is declared, 0 if unknown
	// Discriminator tells apart the blocks of one line, as compilers number them for profiles; 0
	// without Data.Discriminators.
	Discriminator uint32
}

type sections struct {
	info, abbrev, line, str, lineStr, strOffsets, addr, ranges, rnglists Section
}

// cursors read the sections. None is used for two things at the same time.
type cursors struct {
	info, abbrev, line, strOffsets, addr, ranges, rnglists buf
}

// all returns the cursors.
func (c *cursors) all() [7]*buf {
	return [...]*buf{&c.info, &c.abbrev, &c.line, &c.strOffsets, &c.addr, &c.ranges, &c.rnglists}
}

// drop frees the memory that reading took.
func (c *cursors) drop() {
	for _, b := range c.all() {
		b.win, b.own = nil, nil
	}
}

// unit is one compilation unit.
type unit struct {
	off, end uint64 // in .debug_info, header included
	dies     uint64 // offset of the root
	abbrev   uint64
	version  uint16
	wide     bool
	addrSize uint8

	root      bool     // the fields below are read
	abbrevs   *abbrevs // nil until needed
	low       uint64
	strBase   uint64
	addrBase  uint64
	rngBase   uint64
	compDir   value
	stmtList  uint64
	haveLines bool
	partial   bool // the root may not list all of its code

	code *unitCode // nil until needed
}

type unitSpan struct {
	span
	unit int32
}

// Data is the line information of one file. It is not safe for concurrent use.
type Data struct {
	order        binary.ByteOrder
	sect         sections
	cur          cursors
	units        []unit
	index        []unitSpan // sorted by lo
	abbrevTables map[uint64]*abbrevs
	names        map[uint64]subprogram
	scopes       map[uint64]uint64 // entry to the namespace or class around it, of loaded units
	loaded       int
	abbrevKept   int
	abbrevWork   int

	// Discriminators says to read them; it is set before the first Lookup. Profiles for people do
	// not need them, and they take a third more memory.
	Discriminators bool

	// Stop, if set, is asked now and then while units are read, in Open and in Lookup. If it returns
	// true, the rest of them is left out.
	Stop func() bool
	work int // since Stop was asked
}

// stopped counts a piece of work and reports whether no more should be done.
func (d *Data) stopped() bool {
	const often = 1 << 12
	if d.work++; d.work < often || d.Stop == nil {
		return false
	}
	if d.Stop() {
		return true // also when it is asked next
	}
	d.work = 0
	return false
}

// Open reads the units' headers. section returns a .debug_ section by its name without that prefix,
// decompressed; the zero value if the file has none. It bounds the size. stop becomes Data.Stop.
func Open(order binary.ByteOrder, section func(name string) (Section, error), stop func() bool) (*Data, error) {
	d := &Data{order: order, Stop: stop, abbrevTables: map[uint64]*abbrevs{}, names: map[uint64]subprogram{}, scopes: map[uint64]uint64{}}
	for _, s := range []struct {
		name string
		to   *Section
		by   *buf
	}{{"info", &d.sect.info, &d.cur.info}, {"abbrev", &d.sect.abbrev, &d.cur.abbrev}, {"line", &d.sect.line, &d.cur.line},
		{"str", &d.sect.str, nil}, {"line_str", &d.sect.lineStr, nil}, {"str_offsets", &d.sect.strOffsets, &d.cur.strOffsets},
		{"addr", &d.sect.addr, &d.cur.addr}, {"ranges", &d.sect.ranges, &d.cur.ranges}, {"rnglists", &d.sect.rnglists, &d.cur.rnglists}} {
		found, err := section(s.name)
		if err != nil {
			return nil, err
		}
		if *s.to = found; s.by != nil {
			s.by.s, s.by.order = s.to, order
		}
	}
	if d.sect.info.size == 0 || d.sect.abbrev.size == 0 {
		return nil, fmt.Errorf("%w: .debug_info or .debug_abbrev is missing", ErrNone)
	}
	if stop != nil && stop() {
		return nil, fmt.Errorf("%w: reading it was given up", ErrNone)
	}
	g := &budget{left: maxUnitSpans}
	d.readUnits(g)
	if err := d.indexRest(section, g); err != nil {
		return nil, err
	}
	if len(d.index) == 0 {
		return nil, fmt.Errorf("%w: %d units, none with code", ErrNone, len(d.units))
	}
	slices.SortStableFunc(d.index, func(a, b unitSpan) int { return cmp.Compare(a.lo, b.lo) })
	d.cur.drop()
	return d, nil
}

// indexRest adds to the index the units whose roots list no addresses or not all.
func (d *Data) indexRest(section func(string) (Section, error), g *budget) error {
	rest := map[uint64]int32{}
	for i := range d.units {
		if u := &d.units[i]; u.root && u.haveLines {
			rest[u.off] = int32(i)
		}
	}
	for _, s := range d.index {
		if u := &d.units[s.unit]; !u.partial {
			delete(rest, u.off)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	s, err := section("aranges")
	if err != nil {
		return err
	}
	d.readAranges(s, g, func(off uint64, s span) {
		if i, ok := rest[off]; ok {
			d.index = append(d.index, unitSpan{s, i})
		}
	})
	return nil
}

// readUnits finds the units and the ranges of their code. Units that cannot be parsed are left out.
func (d *Data) readUnits(g *budget) {
	h, size := &d.cur.info, d.sect.info.size
	var spans []span
	for next := uint64(0); next < size && len(d.units) < maxUnits; {
		if d.work += 64; d.stopped() {
			return
		}
		u := unit{off: next}
		h.seek(next, size)
		var n uint64
		n, u.wide = h.length()
		if h.bad || n > size-h.off {
			return
		}
		u.end = h.off + n
		next = u.end
		h.limit(u.end)
		u.version = h.u16()
		const unitCompile, unitPartial = 1, 3
		typ := uint8(unitCompile)
		if u.version >= 5 {
			typ = h.u8()
			u.addrSize = h.u8()
			u.abbrev = h.offset(u.wide)
		} else {
			u.abbrev = h.offset(u.wide)
			u.addrSize = h.u8()
		}
		u.dies = h.off
		if h.bad || u.version < 2 || u.version > 5 || (u.addrSize != 4 && u.addrSize != 8) || (typ != unitCompile && typ != unitPartial) {
			continue // type units and skeletons have no code of their own
		}
		spans = d.readRoot(&u, g, spans[:0])
		for _, s := range spans {
			d.index = append(d.index, unitSpan{s, int32(len(d.units))})
		}
		d.units = append(d.units, u)
	}
}

// readRoot reads a unit's first entry and appends the address ranges of its code.
func (d *Data) readRoot(u *unit, g *budget, out []span) []span {
	b := &d.cur.info
	b.seek(u.dies, u.end)
	u.abbrevs = d.parseAbbrevs(u.abbrev, b.uleb())
	defer func() { u.abbrevs = nil }()
	b.seek(u.dies, u.end)
	var e die
	if !d.readDIE(b, u, &e) {
		return out
	}
	// The bases come first: other attributes are relative to them.
	u.strBase, u.addrBase, u.rngBase = e.strBase.v, e.addrBase.v, e.rngBase.v
	if e.strBase.form == 0 && u.version >= 5 {
		u.strBase = 8
		if u.wide {
			u.strBase = 16
		}
	}
	u.low, _ = d.addr(u, e.low)
	u.compDir = e.compDir
	u.stmtList, u.haveLines = e.stmtList.v, e.stmtList.form != 0
	u.partial = u.version <= 3 && e.ranges.form == 0
	u.root = true
	return d.spans(u, &e, g, out)
}

// Lookup appends the places of addr, innermost first, to out. It appends nothing if nothing is
// known of addr.
func (d *Data) Lookup(addr uint64, out []Place) []Place {
	i := sort.Search(len(d.index), func(i int) bool { return d.index[i].lo > addr }) - 1
	// Units' ranges do not overlap, except in damaged files and with some kinds of LTO.
	for n := 0; i >= 0 && n < 8; i, n = i-1, n+1 {
		if s := &d.index[i]; addr < s.hi {
			u := &d.units[s.unit]
			c := d.load(u)
			if got := d.places(u, c, addr, out); len(got) > len(out) {
				return got
			}
		}
	}
	return out
}

// load reads a unit's functions and lines, and drops those of other units if there are too many.
func (d *Data) load(u *unit) *unitCode {
	if u.code != nil {
		return u.code
	}
	if d.loaded > maxLoaded {
		for i := range d.units {
			d.units[i].code = nil
		}
		d.loaded = 0
		clear(d.scopes)
	}
	c := d.readFunctions(u)
	if u.haveLines {
		c.lines = d.readLines(u)
	}
	d.loaded += len(c.functions) + len(c.inlined) + len(c.nodes) + c.lines.size() + 64
	u.code = c
	return c
}

// places returns the places of addr from a unit.
func (d *Data) places(u *unit, c *unitCode, addr uint64, out []Place) []Place {
	p := Place{}
	if r, discriminator, ok := c.lines.find(addr); ok {
		p.File, p.Line, p.Discriminator = d.file(c.lines, r.file), int32(r.line), discriminator
	}
	fn := c.function(addr)
	if fn < 0 {
		if p.File == "" {
			return out
		}
		return append(out, p)
	}
	for n, hops := c.innermost(fn, addr), 0; n >= 0 && hops < maxPlaces; n, hops = c.nodes[n].parent, hops+1 {
		node := &c.nodes[n]
		d.describe(&p, node.die)
		out = append(out, p)
		p = Place{File: d.file(c.lines, node.callFile), Line: int32(node.callLine), Discriminator: node.discriminator}
	}
	d.describe(&p, c.roots[fn].die)
	return append(out, p)
}

func (d *Data) unitOf(off uint64) *unit {
	i := sort.Search(len(d.units), func(i int) bool { return d.units[i].off > off }) - 1
	if i < 0 || off >= d.units[i].end {
		return nil
	}
	return &d.units[i]
}
