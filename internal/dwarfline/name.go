package dwarfline

import "strings"

const (
	maxScopes     = 16 // enclosing names put before a name that is not a linkage name
	maxScopesKept = 1 << 20
)

// name returns the name of the function whose entry is at off: its linkage name, or its plain name
// with the namespaces and classes around it, which is how compilers describe functions that are
// local to a unit.
func (d *Data) name(off uint64) string {
	if s, ok := d.names[off]; ok {
		return s
	}
	name := d.findName(off)
	if len(d.names) >= maxNamesKept {
		clear(d.names)
	}
	d.names[off] = name
	return name
}

func (d *Data) findName(at uint64) string {
	plain := ""
	inside := at
	for range maxOriginHops {
		u, e, ok := d.entryAt(at)
		if !ok {
			break
		}
		if s := d.str(u, e.linkage); s != "" {
			return s
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
		return ""
	}
	return d.qualified(plain, inside)
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
	b := buf{b: d.sect.info[:u.end], off: off, order: d.order}
	ok := d.readDIE(&b, u, &e)
	return u, e, ok
}
