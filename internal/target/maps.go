package target

import (
	"bytes"
	"fmt"
)

// maxMappings bounds how many mappings are kept. vm.max_map_count is 65,530 by default and
// 1,048,576 on distributions that raise it.
const maxMappings = 1 << 20

// maxPath bounds a path in /proc/PID/maps; the kernel's own limit is 4,096 bytes,
// and an escaped newline takes four.
const maxPath = 4 * 4096

// mapsParser parses the text of /proc/PID/maps, line by line.
type mapsParser struct {
	out   []Mapping
	names map[string]string // paths seen, so that each is kept once
	bad   int               // malformed lines
}

// line parses one line without its newline.
func (p *mapsParser) line(b []byte) {
	m, path, ok := parseMapsLine(b)
	if !ok {
		p.bad++
		return
	}
	// The kernel prints the file in pieces, and the process may change its mappings between two of
	// them: a mapping that grew is then listed again.
	if n := len(p.out); n > 0 && m.Start < p.out[n-1].End {
		prev := p.out[n-1].End
		if m.End <= prev {
			return
		}
		m.Offset += prev - m.Start
		m.Start = prev
	}
	name, deleted := mapsPath(path)
	m.Deleted = deleted
	if len(name) > 0 {
		s, seen := p.names[string(name)]
		if !seen {
			s = string(name)
			p.names[s] = s
		}
		m.Path = s
	}
	p.out = append(p.out, m)
}

// parseMaps parses a whole /proc/PID/maps.
func parseMaps(text []byte) ([]Mapping, error) {
	lines := bytes.Count(text, []byte{'\n'}) + 1
	p := mapsParser{out: make([]Mapping, 0, min(lines, maxMappings)), names: make(map[string]string)}
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		text = rest
		if len(line) == 0 {
			continue
		}
		if len(p.out) >= maxMappings {
			return p.out, fmt.Errorf("more than %d mappings: %w", maxMappings, ErrFormat)
		}
		p.line(line)
	}
	if p.bad > 0 && len(p.out) == 0 {
		return nil, fmt.Errorf("no line is a mapping: %w", ErrFormat)
	}
	return p.out, nil
}

// parseMapsLine splits "start-end perms offset major:minor inode  path".
func parseMapsLine(b []byte) (m Mapping, path []byte, ok bool) {
	if m.Start, b, ok = hexUntil(b, '-'); !ok {
		return m, nil, false
	}
	if m.End, b, ok = hexUntil(b, ' '); !ok || m.End <= m.Start {
		return m, nil, false
	}
	if len(b) < 5 || b[4] != ' ' {
		return m, nil, false
	}
	for i, c := range []struct {
		letter byte
		bit    Perm
	}{{'r', PermRead}, {'w', PermWrite}, {'x', PermExec}, {'s', PermShared}} {
		if b[i] == c.letter {
			m.Perm |= c.bit
		}
	}
	b = b[5:]
	if m.Offset, b, ok = hexUntil(b, ' '); !ok {
		return m, nil, false
	}
	var major, minor uint64
	if major, b, ok = hexUntil(b, ':'); !ok || major >= 1<<12 {
		return m, nil, false
	}
	if minor, b, ok = hexUntil(b, ' '); !ok || minor >= 1<<20 {
		return m, nil, false
	}
	m.Dev = major<<20 | minor
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	if m.Inode, ok = decimal(b[:n]); !ok {
		return m, nil, false
	}
	b = b[n:]
	if len(b) > 0 && b[0] != ' ' {
		return m, nil, false
	}
	path = bytes.TrimLeft(b, " ") // paths begin with "/" or "[", so no leading space of a path is lost
	if len(path) > maxPath {
		return m, nil, false
	}
	return m, path, true
}

var (
	deletedSuffix  = []byte(" (deleted)")
	escapedNewline = []byte(`\012`)
)

// mapsPath undoes the kernel's escaping of a path: a newline is written \012 (and nothing else is
// escaped), and " (deleted)" is appended to a file without a name.
func mapsPath(b []byte) (path []byte, deleted bool) {
	if bytes.HasSuffix(b, deletedSuffix) {
		b, deleted = b[:len(b)-len(deletedSuffix)], true
	}
	if bytes.Contains(b, escapedNewline) {
		b = bytes.ReplaceAll(b, escapedNewline, []byte{'\n'})
	}
	return b, deleted
}

// hexUntil reads a hexadecimal number of 1 to 16 digits that ends with stop.
func hexUntil(b []byte, stop byte) (v uint64, rest []byte, ok bool) {
	for i, c := range b {
		switch {
		case c == stop:
			return v, b[i+1:], i > 0
		case i == 16:
			return 0, b, false
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, b, false
		}
	}
	return 0, b, false
}

// decimal reads an unsigned decimal number without sign or spaces.
func decimal(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var v uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || v > (1<<64-1-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, true
}
