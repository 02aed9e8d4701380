// Package redact keeps passwords and other secrets out of output: command lines and properties end
// up in files that people send to others.
package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// Mask replaces a secret.
const Mask = "***"

// name matches names of secrets.
var name = regexp.MustCompile(`(?i)passw|passphrase|passcode|(store|key|src|dest|trust)pass|(^|[^a-z])(pwd|pass|auth|pin|otp|pat|jwt|bearer|creds?)([^a-z]|$)|secret|token|credential|api[-_.]?key|access[-_.]?key|private[-_.]?key|(account|signing|master|client)[-_.]?key|encryption[-_.]?key|licen[cs]e[-_.]?key|signature|authorization|cookie|sonar[-_.]?login`)

// inURL matches the user and the password in a URL.
var inURL = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*):[^/\s@]+@`)

// inDSN matches the user and the password of an address as drivers of Go write it,
// me:x@tcp(host:3306)/db, where a password may have an @ in it, and signed the signature of a URL.
var (
	inDSN  = regexp.MustCompile(`([^\s:@/="']+):\S+@([a-z][a-z0-9]*\()`)
	signed = regexp.MustCompile(`([?&](?:sig|X-Amz-Signature|X-Goog-Signature)=)[^&\s"']+`)
)

// Named reports whether a name is one that secrets have.
func Named(s string) bool { return mayName(s) && name.MatchString(s) }

// Value returns the value of a property, masked if the name is that of a secret, and otherwise with
// the secrets inside it masked.
func Value(name, value string) string {
	if value != "" && Named(name) {
		return Mask
	}
	return inside(value)
}

// inside masks secrets in a longer text: a password before a host,
// jdbc:postgresql://host/db?user=me&password=x, "-Xmx1g -Dpassword=x", curl --token x.
func inside(s string) string {
	s = shapes(s)
	if strings.Contains(s, "@") {
		s = inDSN.ReplaceAllString(s, "$1:"+Mask+"@$2")
	}
	if strings.Contains(s, "=") {
		s = signed.ReplaceAllString(s, "${1}"+Mask)
	}
	if strings.Contains(s, "://") {
		s = inURL.ReplaceAllString(s, "$1:"+Mask+"@")
	}
	if strings.ContainsAny(s, " \t\n") && strings.Contains(s, "-") {
		s = inWords.ReplaceAllStringFunc(s, func(m string) string {
			at := strings.IndexByte(m, '-')
			if i := at + strings.IndexAny(m[at:], " \t\n"); option(m[at:i]) {
				return m[:i+1] + Mask
			}
			return m
		})
	}
	var out strings.Builder
	for {
		before, value, ok := strings.Cut(s, "=")
		if !ok {
			break
		}
		out.WriteString(before + "=")
		// The end of a value is searched only if the value is masked: a text may be long, and
		// consist of equal signs only.
		if key := before[strings.LastIndexFunc(before, notOfName)+1:]; Named(key) {
			if end := valueIn(before[:len(before)-len(key)], value); end > 0 {
				out.WriteString(Mask)
				value = value[end:]
			}
		}
		s = value
	}
	out.WriteString(s)
	return out.String()
}

// inWords matches an option, with what is before it, and the word after it.
var inWords = regexp.MustCompile(`(?:^|[\s"'(=;])--?[A-Za-z0-9_.-]+[ \t\n]+[^\s-]\S*`)

// notOfName reports whether a rune cannot be in an option's or property's name.
func notOfName(r rune) bool {
	return r != '_' && r != '.' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// valueIn returns the length of the value behind a name and an equal sign, given the text before the
// name: if that ends with a quote, so does the value.
func valueIn(before, s string) int {
	if before != "" && strings.ContainsAny(before[len(before)-1:], "\"'") {
		if i := strings.IndexByte(s, before[len(before)-1]); i > 0 {
			return i
		}
	}
	return valueEnd(s)
}

// valueEnd returns the length of the value at the beginning of a text.
func valueEnd(s string) int {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		if i := strings.IndexByte(s[1:], s[0]); i >= 0 {
			return i + 2
		}
	}
	if i := strings.IndexAny(s, "&; \t\n"); i >= 0 {
		return i
	}
	return len(s)
}

// Args returns the arguments of a command with the secrets in them masked: -Ddb.password=x, --token
// x, jdbc:postgresql://me:x@host.
func Args(args []string) []string {
	out := make([]string, len(args))
	program := ""
	for i, a := range args {
		before := ""
		if i > 0 {
			before = args[i-1]
		}
		if !strings.HasPrefix(a, "-") && (program == "" || passNext[programOf(a)] != "" || pass.MatchString(programOf(a))) {
			program = programOf(a) // also that of sudo and env
		}
		masked, is := short(program, before, a)
		a = shapes(a)
		key, value, ok := strings.Cut(a, "=")
		switch {
		case option(before) && !strings.HasPrefix(a, "-"):
			out[i] = Mask
		case is:
			out[i] = masked
		case ok && !strings.Contains(key, "://") && !strings.ContainsAny(key, " \t\n"):
			out[i] = key + "=" + Value(strings.TrimPrefix(key, "-D"), value)
		default:
			out[i] = inside(a)
		}
	}
	return out
}

// Command returns a command line for people, with its secrets masked.
func Command(args []string) string { return strings.Join(Args(args), " ") }

// option reports whether an argument means that the next one is a secret.
func option(a string) bool {
	return strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "-D") && !strings.HasPrefix(a, "-X") && !strings.ContainsAny(a, "=: ") && Named(a)
}

// Line is Args for a command line in which it is not known any more where arguments with spaces
// began: a secret extends to the next option.
func Line(line string) string {
	words := strings.Split(shapes(line), " ")
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
