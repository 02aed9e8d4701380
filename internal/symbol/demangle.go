package symbol

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

const (
	maxRawName     = 8 << 10 // bytes of a symbol's name that are read at all
	maxDemangleIn  = 4 << 10 // longer mangled names stay as they are
	maxDemanglePow = 12      // demangled names are cut at 4096 bytes
	maxName        = 2 << 10 // bytes of a name that is shown
)

// cloneSuffixes are what compilers append to the name of a part or a copy of a
// function. The part runs on behalf of the function, so it is counted to it;
// Frame.Raw keeps the full name. GCC: cold, part, isra, constprop, lto_priv,
// localalias, clone; LLVM: llvm, cold, __uniq.
var cloneSuffixes = []string{".cold", ".part.", ".isra.", ".constprop.", ".lto_priv.", ".localalias", ".llvm.", ".clone.", ".__uniq."}

// Demangle turns a symbol's raw name into what people read: C++ and Rust names
// without parameters, return types and hashes; symbol versions and clone
// suffixes cut off; anything else as it is, made printable and bounded. (D names
// and names that do not parse stay raw.)
func Demangle(raw string) string {
	name := raw
	if i := strings.IndexByte(name, '@'); i > 0 && !strings.HasSuffix(name, pltSuffix) {
		name = name[:i] // a symbol version: memcpy@@GLIBC_2.14
	}
	if i := strings.IndexByte(name, '.'); i > 0 {
		name = cutClone(name)
	}
	if len(name) <= maxDemangleIn && mangled(name) {
		plt := strings.HasSuffix(name, pltSuffix)
		d, err := demangle.ToString(strings.TrimSuffix(name, pltSuffix),
			demangle.NoParams, demangle.NoEnclosingParams, demangle.MaxLength(maxDemanglePow))
		if err == nil && d != "" {
			name = d
			if plt {
				name += pltSuffix
			}
		}
	}
	return Printable(name)
}

func mangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "___Z")
}

func cutClone(name string) string {
	cut := len(name)
	for _, s := range cloneSuffixes {
		if i := strings.Index(name, s); i > 0 && i < cut {
			end := i + len(s)
			// ".cold" must end there or go on with ".": f.coldest is a name of its own.
			if s[len(s)-1] == '.' || end == len(name) || name[end] == '.' {
				cut = i
			}
		}
	}
	return name[:cut]
}

// Printable makes a name that came from a file safe to show: at most 2 KiB of
// valid UTF-8 without control characters.
func Printable(s string) string {
	if len(s) <= maxName && plainASCII(s) {
		return s
	}
	cut := false
	if len(s) > maxName {
		n := maxName
		for n > maxName-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n--
		}
		s, cut = s[:n], true
	}
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
	if cut {
		s += "…"
	}
	return s
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
