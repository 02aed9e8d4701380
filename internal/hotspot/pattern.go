package hotspot

// pattern is a few bytes of machine code with wildcards.
type pattern struct {
	value, mask []byte
}

// pat parses a pattern written as hexadecimal bytes, in which "??" stands for any byte. It panics
// on any other text: patterns are constants of this package.
func pat(s string) pattern {
	var p pattern
	digit := func(c byte) byte {
		switch {
		case c >= '0' && c <= '9':
			return c - '0'
		case c >= 'A' && c <= 'F':
			return c - 'A' + 10
		}
		panic("hotspot: bad pattern " + s)
	}
	for i := 0; i < len(s); i += 3 {
		if s[i] == '?' {
			p.value, p.mask = append(p.value, 0), append(p.mask, 0)
			continue
		}
		p.value, p.mask = append(p.value, digit(s[i])<<4|digit(s[i+1])), append(p.mask, 0xFF)
	}
	return p
}

// at reports whether code matches the pattern at off. An empty pattern matches everywhere.
func (p pattern) at(code []byte, off int) bool {
	if off < 0 || off > len(code) || len(code)-off < len(p.value) {
		return len(p.value) == 0
	}
	c := code[off:]
	for i, v := range p.value {
		if c[i]&p.mask[i] != v {
			return false
		}
	}
	return true
}

// before reports whether code matches the pattern just before off.
func (p pattern) before(code []byte, off int) bool {
	if len(p.value) == 0 {
		return true
	}
	return off >= len(p.value) && off <= len(code) && p.at(code, off-len(p.value))
}
