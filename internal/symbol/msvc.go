package symbol

import "strings"

// Names of Microsoft's compilers: ?function@Class@namespace@@type. Source: LLVM,
// Demangle/MicrosoftDemangle.cpp. Only the qualified name is read; names with templates or local
// scopes stay as they are.

// microsoftOperators are the names of operators by their code.
var microsoftOperators = map[string]string{
	"2": "operator new", "3": "operator delete", "4": "operator=", "5": "operator>>", "6": "operator<<",
	"7": "operator!", "8": "operator==", "9": "operator!=", "A": "operator[]", "C": "operator->", "D": "operator*",
	"E": "operator++", "F": "operator--", "G": "operator-", "H": "operator+", "I": "operator&", "J": "operator->*",
	"K": "operator/", "L": "operator%", "M": "operator<", "N": "operator<=", "O": "operator>", "P": "operator>=",
	"Q": "operator,", "R": "operator()", "S": "operator~", "T": "operator^", "U": "operator|", "V": "operator&&",
	"W": "operator||", "X": "operator*=", "Y": "operator+=", "Z": "operator-=",
	"_0": "operator/=", "_1": "operator%=", "_2": "operator>>=", "_3": "operator<<=", "_4": "operator&=",
	"_5": "operator|=", "_6": "operator^=", "_G": "`scalar deleting destructor'", "_E": "`vector deleting destructor'",
	"_U": "operator new[]", "_V": "operator delete[]",
}

// demangleMicrosoft returns the qualified name; false if it cannot be read.
func demangleMicrosoft(raw string) (string, bool) {
	s, ok := strings.CutPrefix(raw, "?")
	if !ok || len(raw) > maxDemangleIn {
		return "", false
	}
	name, member := "", byte(0) // member: 0 a constructor or destructor, whose name is its class's
	if code, ok := strings.CutPrefix(s, "?"); ok {
		n := 1
		if strings.HasPrefix(code, "_") {
			n = 2
		}
		if len(code) < n {
			return "", false
		}
		if member = code[0]; member != '0' && member != '1' || n == 2 {
			if name = microsoftOperators[code[:n]]; name == "" {
				return "", false
			}
		}
		s = code[n:]
	} else if name, s, ok = strings.Cut(s, "@"); !ok || !plainName(name) {
		return "", false
	}
	parts := []string{name} // innermost first
	known := []string{}     // to which a digit refers
	if name != "" && member == 0 {
		known = append(known, name)
	}
	for !strings.HasPrefix(s, "@") {
		switch {
		case s == "" || len(parts) > 32:
			return "", false
		case s[0] >= '0' && s[0] <= '9':
			if int(s[0]-'0') >= len(known) {
				return "", false
			}
			parts, s = append(parts, known[s[0]-'0']), s[1:]
		case strings.HasPrefix(s, "?A0x"), strings.HasPrefix(s, "?A@"):
			_, s, ok = strings.Cut(s, "@")
			if !ok {
				return "", false
			}
			parts, known = append(parts, "(anonymous namespace)"), append(known, "(anonymous namespace)")
		default:
			var part string
			if part, s, ok = strings.Cut(s, "@"); !ok || !plainName(part) {
				return "", false
			}
			parts, known = append(parts, part), append(known, part)
		}
	}
	if parts[0] == "" {
		if len(parts) < 2 {
			return "", false
		}
		if parts[0] = parts[1]; member == '1' {
			parts[0] = "~" + parts[1]
		}
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(parts, "::"), true
}

// plainName reports whether a part of a name is an identifier.
func plainName(s string) bool { return s != "" && !strings.ContainsAny(s, "?$@ ") }
