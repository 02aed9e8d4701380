package symbol

import "strings"

// demangleD returns the qualified name of a function of D without its types: "work.grow" for
// _D4work4growFiZCQo4Node. False for what that would not tell apart: instances of templates, and
// functions in functions. The source is the ABI in D's specification, "Name Mangling".
func demangleD(raw string) (string, bool) {
	var b strings.Builder
	i := len("_D")
	if !strings.HasPrefix(raw, "_D") {
		return "", false
	}
	for i < len(raw) {
		at := i
		if raw[i] == 'Q' { // an identifier that was there before, so many bytes back
			back, n := 0, i+1
			for ; n < len(raw) && raw[n] >= 'A' && raw[n] <= 'Z' && back < len(raw); n++ {
				back = back*26 + int(raw[n]-'A')
			}
			if n == len(raw) || raw[n] < 'a' || raw[n] > 'z' {
				return "", false
			}
			if at = i - (back*26 + int(raw[n]-'a')); at < len("_D") || at >= i || raw[at] < '0' || raw[at] > '9' {
				break // a type
			}
			i = n + 1
		}
		if raw[at] < '1' || raw[at] > '9' {
			break
		}
		size, n := 0, at
		for ; n < len(raw) && raw[n] >= '0' && raw[n] <= '9' && size <= len(raw); n++ {
			size = size*10 + int(raw[n]-'0')
		}
		if size > len(raw)-n || b.Len() > maxRawName {
			return "", false
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(raw[n : n+size])
		if at == i {
			i = n + size
		}
	}
	name, rest := b.String(), raw[i:]
	if name == "" || !strings.ContainsRune(rest, 'Z') || strings.Contains(name, "__T") || rest[0] != 'F' && rest[0] != 'M' {
		return "", false
	}
	for k := range len(rest) - 1 {
		if next := rest[k+1]; rest[k] == 'Z' && (next == '_' || next >= '0' && next <= '9') {
			return "", false
		}
	}
	return name, true
}
