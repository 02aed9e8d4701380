package redact

import "strings"

// nameParts are words of which each name of a secret contains one, by their first letter. Most names
// contain none, and looking for these takes a small part of the time that the regular expression does.
var nameParts = [256][]string{
	'a': {"auth"}, 'b': {"bearer"}, 'c': {"cred", "cookie"}, 'j': {"jwt"}, 'k': {"key"}, 'l': {"login"}, 'o': {"otp"},
	'p': {"pass", "pwd", "pin", "pat"}, 's': {"secret", "signature"}, 't': {"token"},
}

// mayName reports whether s may be the name of a secret.
func mayName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x80 {
			return true // a few letters beyond ASCII are others in upper case
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		for _, part := range nameParts[c] {
			if len(s)-i >= len(part) && strings.EqualFold(s[i:i+len(part)], part) {
				return true
			}
		}
	}
	return false
}
