package symbol

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

const (
	maxRawName     = 8 << 10 // bytes of a symbol's name that are read at most
	maxDemangleIn  = 4 << 10 // longer mangled names stay as they are
	maxDemanglePow = 12      // demangled names are cut at 4096 bytes
	maxName        = 2 << 10 // bytes of a displayed name
)

// cloneSuffixes are what compilers append to the name of a part or a copy of a function. The part
// runs on behalf of the function, so its time is the function's; Frame.Raw keeps the full name.
// GCC: cold, part, isra, constprop, lto_priv, localalias, clone; LLVM: llvm, cold, __uniq.
var cloneSuffixes = []string{".cold", ".part.", ".isra.", ".constprop.", ".lto_priv.", ".localalias", ".llvm.", ".clone.", ".__uniq."}

// Demangle turns a symbol's raw name into its display form. C++ and Rust names have no parameters,
// return types and hashes; symbol versions and clone suffixes are cut off; anything else stays as
// it is, made printable and bounded. (D names and names that do not parse stay raw.)
func Demangle(raw string) string {
	name := raw
	if strings.HasPrefix(raw, "?") {
		if d, ok := demangleMicrosoft(raw); ok {
			name = d
		}
		return Printable(name)
	}
	if d, ok := demangleD(raw); ok {
		return Printable(d)
	}
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
			name = cutThunkParams(d)
			if plt {
				name += pltSuffix
			}
		}
	}
	if len(name) <= 1<<maxDemanglePow && strings.IndexByte(name, '<') > 0 {
		name = shortTemplate(name)
	}
	return Printable(name)
}

// defaultArgs are the default template arguments of the standard library's containers, which nobody
// writes.
var defaultArgs = []string{", std::allocator<", ", std::char_traits<", ", std::default_delete<"}

// shortTemplate shortens std::vector<int, std::allocator<int> > to the form that people write:
// std::vector<int>.
func shortTemplate(name string) string {
	for _, arg := range defaultArgs {
		for i := 0; ; {
			j := strings.Index(name[i:], arg)
			if j < 0 {
				break
			}
			i += j
			end := closing(name, i+len(arg))
			if end < 0 {
				break
			}
			if strings.HasPrefix(name[end:], " >") {
				end++
			}
			name = name[:i] + name[end:]
		}
	}
	if strings.Contains(name, "> >") {
		name = strings.ReplaceAll(name, "> >", ">>")
		name = strings.ReplaceAll(name, "> >", ">>") // of three in a row
	}
	return strings.ReplaceAll(name, "std::__cxx11::basic_string<char>", "std::string")
}

// closing returns the index after the '>' that closes the bracket opened before i.
func closing(s string, i int) int {
	depth := 1
	for ; i < len(s); i++ {
		switch s[i] {
		case '<', '(':
			depth++
		case '>', ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// cutThunkParams removes the parameters from a thunk's name, in which the demangler leaves them.
func cutThunkParams(name string) string {
	if !strings.Contains(name, "thunk to ") {
		return name
	}
	s := strings.TrimSuffix(name, " const")
	if !strings.HasSuffix(s, ")") {
		return name
	}
	depth := 0
	for i := len(s) - 1; i > 0; i-- {
		switch s[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return s[:i]
			}
		}
	}
	return name
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

// Printable makes a name that came from a file safe to display: at most 2 KiB of valid UTF-8
// without control characters.
func Printable(s string) string {
	if len(s) <= maxName && plainASCII(s) {
		return s
	}
	whole := len(s)
	s = cutName(s)
	cut := len(s) < whole
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
	if len(s) > maxName { // the replacement is longer than what it replaces
		s, cut = cutName(s), true
	}
	if cut {
		s += "…"
	}
	return s
}

// cutName cuts a name at maxName bytes, before a rune rather than inside it.
func cutName(s string) string {
	if len(s) <= maxName {
		return s
	}
	n := maxName
	for n > maxName-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
