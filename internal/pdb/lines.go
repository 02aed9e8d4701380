package pdb

import (
	"encoding/binary"
	"sort"
)

// Place is a source position.
type Place struct {
	Function string // of an inlined function; "" for the function that was compiled
	File     string
	Line     int
}

// function is one that a module describes, with the functions inlined into it.
type function struct {
	segment      uint16
	offset, size uint32
	sites        []site
}

// site is a place at which a function was inlined.
type site struct {
	parent int // index of the enclosing site, -1: the function itself
	id     uint32
	notes  []byte // where its code and its lines are
}

// inlinee is where an inlined function begins in the source.
type inlinee struct{ file, line uint32 }

// lineBlock is the lines of a range of code.
type lineBlock struct {
	segment      uint16
	offset, size uint32
	columns      bool
	data         []byte
}

// Bounds on what one module may describe.
const (
	maxFunctions = 1 << 20
	maxSites     = 1 << 16 // in a function
	maxInlinees  = 1 << 20
	maxNotes     = 1 << 16
)

// parse reads a module's functions and its lists of lines, once.
func (f *File) parse(m *module) {
	if m.parsed {
		return
	}
	m.parsed = true
	b, err := f.c.stream(m.stream)
	if err != nil || uint64(m.symbols)+uint64(m.old)+uint64(m.lines) > uint64(len(b)) || m.symbols < 4 {
		return
	}
	f.parsed += 2 * len(b) // with what is made of them
	le := binary.LittleEndian
	var open []int // indices of sites that have not ended
	for kind, r := range each(b[4:m.symbols]) {
		switch {
		case procedure(kind) && len(r) >= procName && len(m.functions) < maxFunctions:
			m.functions = append(m.functions, function{segment: le.Uint16(r[32:]), offset: le.Uint32(r[28:]), size: le.Uint32(r[12:])})
			open = open[:0]
		case (kind == symInline && len(r) >= 12 || kind == symInline2 && len(r) >= 16) && len(m.functions) > 0:
			fn := &m.functions[len(m.functions)-1]
			if len(fn.sites) == maxSites {
				continue
			}
			s := site{parent: -1, id: le.Uint32(r[8:]), notes: r[12:]}
			if kind == symInline2 {
				s.notes = r[16:]
			}
			if len(open) > 0 {
				s.parent = open[len(open)-1]
			}
			open = append(open, len(fn.sites))
			fn.sites = append(fn.sites, s)
		case kind == symInlineEnd && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	sort.SliceStable(m.functions, func(i, j int) bool { return before(m.functions[i], m.functions[j]) })
	f.parseLines(m, b[m.symbols+m.old:][:m.lines])
}

func before(a, b function) bool {
	return a.segment < b.segment || a.segment == b.segment && a.offset < b.offset
}

// Kinds of subsections of a module's lines.
const (
	subLines    = 0xf2
	subFiles    = 0xf4
	subInlinees = 0xf6
)

func (f *File) parseLines(m *module, b []byte) {
	le := binary.LittleEndian
	m.inlinees = map[uint32]inlinee{}
	for len(b) >= 8 {
		kind, n := le.Uint32(b), le.Uint32(b[4:])
		b = b[8:]
		if uint64(n) > uint64(len(b)) {
			return
		}
		d := b[:n]
		switch kind {
		case subFiles:
			m.checksums = d
		case subLines:
			if len(d) >= 12 {
				m.lineBlocks = append(m.lineBlocks, lineBlock{le.Uint16(d[4:]), le.Uint32(d), le.Uint32(d[8:]), le.Uint16(d[6:])&1 != 0, d[12:]})
			}
		case subInlinees:
			if len(d) < 4 {
				break
			}
			more := le.Uint32(d) == 1 // each entry has a list of further files
			for d = d[4:]; len(d) >= 12 && len(m.inlinees) < maxInlinees; {
				m.inlinees[le.Uint32(d)] = inlinee{le.Uint32(d[4:]), le.Uint32(d[8:])}
				d = d[12:]
				if more {
					if len(d) < 4 || uint64(le.Uint32(d))*4 > uint64(len(d)-4) {
						break
					}
					d = d[4+4*le.Uint32(d):]
				}
			}
		}
		b = b[min((n+3)&^3, uint32(len(b))):]
	}
}

// file returns the path of a source file, by its offset in the module's list.
func (f *File) file(m *module, off uint32) string {
	if uint64(off)+4 > uint64(len(m.checksums)) {
		return ""
	}
	return cString(f.names, binary.LittleEndian.Uint32(m.checksums[off:]))
}

// Lines appends the source positions of an address to out, innermost first: the inlined functions
// and last the one that was compiled. It appends nothing if they are not known.
func (f *File) Lines(segment uint16, offset uint32, out []Place) []Place {
	i := sort.Search(len(f.places), func(i int) bool {
		c := &f.places[i]
		return c.segment > segment || c.segment == segment && c.offset > offset
	}) - 1
	if i < 0 || f.places[i].segment != segment || offset-f.places[i].offset >= f.places[i].size || int(f.places[i].module) >= len(f.modules) {
		return out
	}
	m := &f.modules[f.places[i].module]
	f.parse(m)
	return f.lines(m, segment, offset, out)
}

func (f *File) lines(m *module, segment uint16, offset uint32, out []Place) []Place {
	i := sort.Search(len(m.functions), func(i int) bool { return before(function{segment: segment, offset: offset}, m.functions[i]) }) - 1
	if i >= 0 && m.functions[i].segment == segment && offset-m.functions[i].offset < m.functions[i].size {
		fn := &m.functions[i]
		// Inner sites come after the sites that contain them.
		for k := len(fn.sites) - 1; k >= 0; k-- {
			p, ok := f.inlined(m, &fn.sites[k], offset-fn.offset)
			if !ok {
				continue
			}
			out = append(out, p)
			for up, n := fn.sites[k].parent, 0; up >= 0 && n < maxSites; up, n = fn.sites[up].parent, n+1 {
				if p, ok := f.inlined(m, &fn.sites[up], offset-fn.offset); ok {
					out = append(out, p)
				}
			}
			break
		}
	}
	if file, line, ok := f.line(m, segment, offset); ok {
		return append(out, Place{File: file, Line: line})
	}
	return out
}

// line finds the line of the function that was compiled.
func (f *File) line(m *module, segment uint16, offset uint32) (file string, line int, ok bool) {
	le := binary.LittleEndian
	for i := range m.lineBlocks {
		b := &m.lineBlocks[i]
		if b.segment != segment || offset-b.offset >= b.size {
			continue
		}
		best := uint32(0)
		for d := b.data; len(d) >= 12; {
			name, n, size := le.Uint32(d), le.Uint32(d[4:]), le.Uint32(d[8:])
			if size < 12 || uint64(size) > uint64(len(d)) || uint64(n)*8 > uint64(size-12) {
				break
			}
			for l := d[12 : 12+8*n]; len(l) > 0; l = l[8:] {
				// Lines of compiler-made code have numbers above all others.
				at, number := le.Uint32(l), le.Uint32(l[4:])&0xffffff
				if at <= offset-b.offset && (!ok || at >= best) && number < 0xf00000 {
					best, file, line, ok = at, f.file(m, name), int(number), true
				}
			}
			d = d[size:]
		}
		return file, line, ok
	}
	return "", 0, false
}
