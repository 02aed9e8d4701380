package redact

import (
	"regexp"
	"strings"
)

// pair matches the name of a setting whose value follows under a key of its own, as in the
// environment of a container in JSON and YAML, {"name":"TOKEN","value":"x"}, and in XML.
var pair = regexp.MustCompile(`(?i)\b(?:name|key)\\*["']?[ \t]*[:=][ \t]*\\*["']?([a-z0-9_.-]+)\\*["']?[\s,;]*\\*["']?\bvalue\\*["']?[ \t]*[:=][ \t]*`)

// assignments masks the values that names of secrets get in a script, a makefile or a file of settings:
// token = "x", TOKEN := x, 'token' => 'x', setProperty("TOKEN", "x"), <token>x</token>. What stands
// behind name=, without spaces, is left to inside and Args, which know where an argument ends.
func assignments(s string) string {
	var out strings.Builder
	for {
		i := strings.IndexAny(s, "=,>")
		if i < 0 {
			break
		}
		end := i + 1
		for end < len(s) && (s[end] == '=' || s[end] == '>') && s[i] == '=' {
			end++
		}
		value := strings.TrimLeft(s[end:], " \t\r\n")
		n := 0
		if assigns(s[:i], s[i], value) {
			n = assignedEnd(value, s[i] == '>')
		}
		end = len(s) - len(value)
		out.WriteString(s[:end])
		if n > 0 {
			out.WriteString(Mask)
		}
		s = value[n:]
	}
	out.WriteString(s)
	return paired(out.String())
}

// longestName bounds how much of a text is looked at for one name.
const longestName = 200

// assigns reports whether an operator gives a value to the name of a secret. before is the text before
// it.
func assigns(before string, operator byte, value string) bool {
	before = before[max(0, len(before)-longestName):]
	word := before
	if operator == '=' {
		word = strings.TrimRight(before, ":?+.|")
	}
	written := len(word) < len(before) // an operator that no argument of a command has
	name := strings.TrimRight(word, " \t\r\n")
	name = strings.TrimRight(strings.TrimSuffix(name, " string"), " \t") // a type of Go
	spaced := len(name) < len(word)
	bare := strings.TrimRight(strings.TrimSuffix(name, "]"), "\\\"'`")
	quoted := len(bare) < len(name)
	name = bare[strings.LastIndexFunc(bare, notOfName)+1:]
	if name == "" {
		return false
	}
	switch operator {
	case '=':
		return (written || spaced || quoted) && Named(name)
	case ',':
		if !quoted || value == "" || !strings.ContainsAny(value[:1], "\"'`\\") || !Named(name) {
			return false
		}
		next := strings.TrimLeft(value[shapeEnd(value, false):], " \t\r\n")
		return !strings.HasPrefix(next, ":") && !strings.HasPrefix(next, "=") // another name
	}
	return !quoted && strings.HasSuffix(bare[:len(bare)-len(name)], "<") && Named(name)
}

// assignedEnd returns the length of the value behind an operator, where that of an XML element ends at
// the next one.
func assignedEnd(s string, element bool) int {
	if element {
		if i := strings.IndexByte(s, '<'); i >= 0 {
			return len(strings.TrimRight(s[:i], " \t\r\n"))
		}
	}
	if s != "" && strings.ContainsAny(s[:1], "\"'`\\") {
		return shapeEnd(s, false)
	}
	if i := strings.IndexAny(s, "&; \t\r\n\"'`<)"); i >= 0 {
		return i
	}
	return len(s)
}

// paired masks the values of settings that are written as a name and a value.
func paired(s string) string {
	if !strings.Contains(s, "value") && !strings.Contains(s, "Value") && !strings.Contains(s, "VALUE") {
		return s
	}
	var out strings.Builder
	for {
		m := pair.FindStringSubmatchIndex(s)
		if m == nil {
			break
		}
		end := 0
		if Named(s[m[2]:m[3]]) {
			end = shapeEnd(s[m[1]:], false)
		}
		out.WriteString(s[:m[1]])
		if end > 0 {
			out.WriteString(Mask)
		}
		s = s[m[1]+end:]
	}
	out.WriteString(s)
	return out.String()
}

// userIn matches an option in a longer text whose value is a user's name and password.
var userIn = regexp.MustCompile(`((?:^|\s)(?:-[uU][ \t]*=?|--(?:user|proxy-user|creds|credentials)(?:[ \t]+|=)))((?:"[^"]*"|'[^']*'|[^\s"'])+)`)

// users masks the passwords in curl -u me:x.
func users(s string) string {
	if !strings.Contains(s, ":") || !strings.Contains(s, "-u") && !strings.Contains(s, "-U") && !strings.Contains(s, "-proxy-user") && !strings.Contains(s, "--cred") {
		return s
	}
	return userIn.ReplaceAllStringFunc(s, func(m string) string {
		at := userIn.FindStringSubmatchIndex(m)[4]
		if masked, is := userPassword(m[at:]); is {
			return m[:at] + masked
		}
		return m
	})
}

// userPassword masks the password behind a user's name, and the name if it has no password: it is a
// key then. It returns false for what is none, such as the numbers of a user and a group.
func userPassword(s string) (string, bool) {
	user, password, ok := strings.Cut(s, ":")
	name, word := strings.Trim(user, `"'`), strings.Trim(password, `"'`)
	if !ok || name+word == "" || strings.Contains(s, "://") || number(name) && number(word) {
		return s, false
	}
	if word == "" {
		return Mask + ":", true
	}
	if strings.Count(user, `"`)%2+strings.Count(user, "'")%2 > 0 {
		return user + ":" + Mask + user[:1], true // the quotes are around both
	}
	return user + ":" + Mask, true
}

// number reports whether a text has digits only.
func number(s string) bool { return s != "" && strings.Trim(s, digits) == "" }
