package dwarfline

import "strings"

const (
	maxScopes     = 16 // enclosing names put before a name that is not a linkage name
	maxScopesKept = 1 << 20
)

// subprogram is what is known of a function by its entry.
type subprogram struct {
	name string
	line int32 // of its declaration, 0 if unknown
}

// describe sets the function of a place: that whose entry is at off.
func (d *Data) describe(p *Place, off uint64) {
	s, ok := d.names[off]
	if !ok {
		s.name, s.line = d.findName(off)
		if len(d.names) >= maxNamesKept {
			clear(d.names)
		}
		d.names[off] = s
	}
	p.Function, p.Start = s.name, s.line
}

// findName returns the name of the function whose entry is at an offset: its linkage name, or its
// plain name with the namespaces and classes around it, which is how compilers describe functions
// that are local to a unit; and the line of its declaration. The entry of a definition comes before
// that of a declaration in a class.
func (d *Data) findName(at uint64) (name string, line int32) {
	plain := ""
	inside := at
	for range maxOriginHops {
		u, e, ok := d.entryAt(at)
		if !ok {
			break
		}
		if line == 0 {
			line = int32(e.declLine.v)
		}
		if s := d.str(u, e.linkage); s != "" {
			if line == 0 {
				line = d.declared(u, e)
			}
			return s, line
		}
		if plain == "" {
			plain = d.str(u, e.name)
		}
		inside = at
		next, ok := u.ref(e.origin)
		if !ok {
			break
		}
		at = next
	}
	if plain == "" {
		return "", line
	}
	return d.qualified(plain, inside), line
}

// declared returns the line of the declaration that an entry refers to.
func (d *Data) declared(u *unit, e die) int32 {
	for range maxOriginHops {
		next, ok := u.ref(e.origin)
		if !ok {
			return 0
		}
		if u, e, ok = d.entryAt(next); !ok {
			return 0
		}
		if e.declLine.v != 0 {
			return int32(e.declLine.v)
		}
	}
	return 0
}

// qualified puts the names of the scopes around the entry at off before name.
func (d *Data) qualified(name string, off uint64) string {
	var parts [maxScopes + 1]string
	i := maxScopes
	parts[i] = name
	for total := len(name); i > 0 && total < maxString; {
		parent, ok := d.scopes[off]
		if !ok {
			break
		}
		off = parent
		u, e, ok := d.entryAt(off)
		if !ok {
			break
		}
		s := d.str(u, e.name)
		if s == "" && e.tag == tagNamespace {
			s = "(anonymous namespace)"
		}
		if s == "" {
			continue // an unnamed class
		}
		i--
		parts[i] = s
		total += len(s)
	}
	return strings.Join(parts[i:], "::")
}

// entryAt reads the entry at off in .debug_info.
func (d *Data) entryAt(off uint64) (*unit, die, bool) {
	var e die
	u := d.unitOf(off)
	if u == nil || !u.root || off < u.dies {
		return nil, e, false
	}
	if u.abbrevs == nil {
		u.abbrevs = d.abbrevTable(u.abbrev)
	}
	b := &d.cur.info
	b.seek(off, u.end)
	ok := d.readDIE(b, u, &e)
	return u, e, ok
}
