// Package secret keeps passwords and the like out of what is written: command lines
// and properties end up in files that people send to others.
package secret

import (
	"regexp"
	"strings"
)

// Mask stands where a secret was.
const Mask = "***"

// name is what the names of secrets have in them.
var name = regexp.MustCompile(`(?i)passw|passphrase|passcode|(^|[^a-z])(pwd|pass|auth|pin)([^a-z]|$)|secret|token|credential|api[-_.]?key|access[-_.]?key|private[-_.]?key|encryption[-_.]?key|signature|authorization|cookie`)

// inURL is the user and the password in an address.
var inURL = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*):[^/\s@]+@`)

// Named says whether a name is one that secrets have.
func Named(s string) bool { return name.MatchString(s) }

// Value gives the value of a property, masked if the name is a secret's.
func Value(name, value string) string {
	if value != "" && Named(name) {
		return Mask
	}
	return inURL.ReplaceAllString(value, "$1:"+Mask+"@")
}

// Args gives the arguments of a command with the secrets in them masked:
// -Ddb.password=x, --token x, jdbc:postgresql://me:x@host.
func Args(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		key, value, ok := strings.Cut(a, "=")
		switch {
		case i > 0 && option(args[i-1]) && !strings.HasPrefix(a, "-"):
			out[i] = Mask
		case ok && !strings.Contains(key, "://"):
			out[i] = key + "=" + Value(strings.TrimPrefix(key, "-D"), value)
		default:
			out[i] = inURL.ReplaceAllString(a, "$1:"+Mask+"@")
		}
	}
	return out
}

// option says whether an argument says that the next one is a secret.
func option(a string) bool {
	return strings.HasPrefix(a, "--") && !strings.Contains(a, "=") && Named(a)
}

// Line is Args for a command line in which nobody knows any more where arguments
// with spaces began: a secret reaches to the next option.
func Line(line string) string {
	words := strings.Split(line, " ")
	masked := Args(words)
	out := masked[:0]
	hide := false
	for i, w := range words {
		if hide && !strings.HasPrefix(w, "-") {
			continue
		}
		hide = masked[i] != w && strings.HasSuffix(masked[i], Mask) || option(w)
		out = append(out, masked[i])
		if option(w) {
			out = append(out, Mask)
		}
	}
	return strings.Join(out, " ")
}
