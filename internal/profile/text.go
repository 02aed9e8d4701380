package profile

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PlainText spells out what can take over a terminal or disguise what follows: control characters, bytes
// that are not UTF-8, separators of lines, and characters that change the direction of text. Names
// in a profile come from programs and files that may be hostile, and end up on terminals, in pages,
// and in files that other programs show.
func PlainText(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return spelled(s)
		}
	}
	return s
}

func spelled(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, active) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, "\\x%02x", s[i])
		case !active(r):
			b.WriteString(s[i : i+n])
		case r == '\n':
			b.WriteString("\\n")
		case r == '\r':
			b.WriteString("\\r")
		case r == '\t':
			b.WriteString("\\t")
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
		i += n
	}
	return b.String()
}

// active reports whether a character does something where it is shown.
func active(r rune) bool { return unicode.Is(unicode.Cc, r) || r > 0x7f && directs(r) }

// directs reports whether a character separates lines or changes the direction of text
// (https://www.unicode.org/reports/tr9/, Directional Formatting Characters).
func directs(r rune) bool {
	switch {
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// Clean makes every text of a profile plain that is not the name of a function, a thread or a system
// call: those were made plain when they were added.
func (p *Profile) Clean() {
	m := &p.Meta
	for _, s := range []*string{&m.Host, &m.Engine, &m.Describe, &m.Command, &m.Version} {
		*s = PlainText(*s)
	}
	for i := range m.Notes {
		m.Notes[i] = PlainText(m.Notes[i])
	}
	for i := range p.Events {
		e := &p.Events[i]
		e.Name, e.Unit = PlainText(e.Name), PlainText(e.Unit)
	}
	for i := range p.Processes {
		p.Processes[i] = p.Processes[i].plain()
	}
	for i := range p.Threads {
		t := &p.Threads[i]
		t.Name, t.OSName, t.Kind = PlainText(t.Name), PlainText(t.OSName), PlainText(t.Kind)
	}
	for i := range p.Syscalls {
		p.Syscalls[i] = PlainText(p.Syscalls[i])
	}
	for _, set := range p.Labels {
		for i := range set {
			l := &set[i]
			l.Key, l.Text, l.Unit = PlainText(l.Key), PlainText(l.Text), PlainText(l.Unit)
		}
	}
	for i := range p.Observations {
		p.Observations[i].plain()
	}
}

func (f Func) plain() Func {
	f.Name, f.Raw, f.Signature = PlainText(f.Name), PlainText(f.Raw), PlainText(f.Signature)
	f.Module, f.File = PlainText(f.Module), PlainText(f.File)
	return f
}

func (p Process) plain() Process {
	p.Command, p.Runtime = PlainText(p.Command), PlainText(p.Runtime)
	return p
}

func (o *Observation) plain() {
	for i := range o.Values {
		if v := &o.Values[i]; v.Text != "" {
			v.Text = PlainText(v.Text)
		}
	}
}
