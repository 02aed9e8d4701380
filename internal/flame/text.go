package flame

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText bounds one string on the page, in bytes. Java allows names of 65,535
// bytes and C++ knows no limit; nobody reads that much in a line.
const MaxText = 4096

// Visible makes text that a target chose safe to read: bytes that are not UTF-8, control characters
// and characters that change the direction or the width of what follows are spelled out, so that a
// name can neither hide nor disguise itself. Markup needs no care here: the page only ever shows
// text as text.
func Visible(s string) string {
	if len(s) <= MaxText && plain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if b.Len() > MaxText {
			b.WriteString("…")
			break
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, "\\x%02x", s[i])
		case hidden(r):
			spell(&b, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return utf8.ValidString(s) && !strings.ContainsFunc(s, hidden)
		}
	}
	return true
}

// hidden reports whether r has no shape of its own: controls (Cc), format
// characters such as bidirectional overrides and zero-width joiners (Cf), line
// separators, private use and surrogates.
func hidden(r rune) bool {
	return unicode.Is(unicode.C, r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar
}

func spell(b *strings.Builder, r rune) {
	switch r {
	case '\n':
		b.WriteString("\\n")
	case '\r':
		b.WriteString("\\r")
	case '\t':
		b.WriteString("\\t")
	default:
		if r > 0xffff {
			fmt.Fprintf(b, "\\U%08x", r)
		} else {
			fmt.Fprintf(b, "\\u%04x", r)
		}
	}
}
