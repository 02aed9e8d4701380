package redact

import (
	"path"
	"regexp"
	"strings"
)

// key matches a name that is followed by a colon, in quotes or not: in JSON, YAML and HTTP headers.
var key = regexp.MustCompile(`([A-Za-z0-9_.-]+)(\\*["']?[ \t]*:[ \t]*)`)

// header matches the names of HTTP headers whose whole value is secret.
var header = regexp.MustCompile(`(?i)^(?:proxy-)?authorization$|^(?:set-)?cookie$`)

// scheme matches the word before the secret in the header Authorization.
var scheme = regexp.MustCompile(`(?i)^(?:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)[ \t]+`)

// userOnly matches what stands before the host of a URL without a password: a token, mostly. The user
// names of ssh are none.
var userOnly = regexp.MustCompile(`\b([a-zA-Z][a-zA-Z0-9+.-]*)://([^/\s:@"']+)@`)

// shapes masks the secrets of a text that are recognized by what they look like, and those behind a
// name and a colon or another operator.
func shapes(s string) string {
	s = tokens(s)
	if strings.Contains(s, "://") {
		s = userOnly.ReplaceAllStringFunc(s, func(m string) string {
			if scheme, _, _ := strings.Cut(m, "://"); strings.Contains(scheme, "ssh") || scheme == "sftp" || scheme == "git" || scheme == "rsync" || scheme == "svn" {
				return m
			}
			return m[:strings.Index(m, "://")+3] + Mask + "@"
		})
	}
	return users(colons(assignments(s)))
}

// colons masks password:x, "password": "x", Authorization: Bearer x.
func colons(s string) string {
	if !strings.Contains(s, ":") {
		return s
	}
	var out strings.Builder
	for {
		m := key.FindStringSubmatchIndex(s)
		if m == nil {
			break
		}
		name, value := s[m[2]:m[3]], s[m[1]:]
		out.WriteString(s[:m[1]])
		s = value
		if !Named(name) || strings.HasPrefix(value, "//") || strings.HasPrefix(strings.TrimLeft(value, ":"), "=") {
			continue
		}
		if at := scheme.FindString(value); at != "" {
			out.WriteString(at)
			value = value[len(at):]
		}
		if end := shapeEnd(value, header.MatchString(name)); end > 0 {
			out.WriteString(Mask)
			value = value[end:]
		}
		s = value
	}
	out.WriteString(s)
	return out.String()
}

// shapeEnd returns the length of the value behind a colon. The value of a header goes on to the next
// option.
func shapeEnd(s string, whole bool) int {
	slashes := len(s) - len(strings.TrimLeft(s, `\`))
	if slashes < len(s) && (s[slashes] == '"' || s[slashes] == '\'') {
		closing := s[:slashes+1]
		for at := len(closing); at < len(s); {
			i := strings.Index(s[at:], closing)
			if i < 0 {
				return len(s)
			}
			if at += i; slashes > 0 || s[at-1] != '\\' {
				return at + len(closing)
			}
			at += len(closing)
		}
		return len(s)
	}
	stops := " \t\n,;&\"'}])"
	if whole {
		stops = "\n\"'"
		if i := strings.Index(s, " -"); i >= 0 {
			s = s[:i]
		}
	}
	if i := strings.IndexAny(s, stops); i >= 0 {
		return i
	}
	return len(s)
}

// withUser are options whose value is a user's name and password: curl -u me:x.
var withUser = map[string]bool{"-u": true, "-U": true, "--user": true, "--proxy-user": true, "--creds": true, "--credentials": true}

// pass are the programs whose option -p has a password right behind it, and passNext those that have
// it as the next argument.
var (
	pass     = regexp.MustCompile(`^(?:mysql|mariadb|7z|rar$|unrar$|sshpass$|mongo)`)
	passNext = map[string]string{"sshpass": "-p", "redis-cli": "-a", "ldapsearch": "-w", "ldapadd": "-w", "ldapmodify": "-w", "mongo": "-p", "mongosh": "-p", "zip": "-P", "unzip": "-P", "sqlcmd": "-P"}
)

// mixed matches a password behind -p of any program: nothing else there has letters and digits. Ports,
// paths and words have other characters, or only one kind of these.
var mixed = regexp.MustCompile(`^[^\s:/.,=]*(?:[A-Za-z][^\s:/.,=]*[0-9]|[0-9][^\s:/.,=]*[A-Za-z])[^\s:/.,=]*$`)

// short masks an argument that is a secret by the short option that it is, or that is before it; false
// if it is none. program is the name of the command.
func short(program, before, a string) (string, bool) {
	if withUser[before] || strings.HasPrefix(a, "-u") && len(a) > 2 {
		if masked, is := userPassword(strings.TrimPrefix(a, "-u")); is {
			return a[:len(a)-len(strings.TrimPrefix(a, "-u"))] + masked, true
		}
	}
	if next := passNext[program]; next != "" && before == next {
		return Mask, true
	}
	if value, ok := strings.CutPrefix(a, "-p"); ok && value != "" && (pass.MatchString(program) && !strings.HasPrefix(value, "rotocol") || mixed.MatchString(value)) {
		return "-p" + Mask, true
	}
	return a, false
}

// programOf returns the name of the command that an argument is, if it may be one.
func programOf(a string) string { return path.Base(a) }
