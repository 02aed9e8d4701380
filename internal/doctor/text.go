package doctor

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Style is how to write a Report as text.
type Style struct {
	Width int  // columns; 0: 100
	Color bool // with terminal escape sequences
}

const (
	widthDefault = 100
	widthLeast   = 40
	// leastText is the least width in columns of running text beside other columns.
	leastText = 24
	// rowsOfModules is how many modules are listed for people.
	rowsOfModules = 40
)

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer, style Style) error {
	t := &page{w: bufio.NewWriter(w), width: style.Width, color: style.Color}
	if t.width <= 0 {
		t.width = widthDefault
	}
	t.width = max(t.width, widthLeast)
	t.verdict(r.Verdict)
	t.line("")
	t.engines(r)
	for rest := r.Checks; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Group == rest[0].Group {
			n++
		}
		heading := rest[0].Group
		if heading == groupTarget && r.Target != nil {
			heading = fmt.Sprintf("process %d", r.Target.PID)
			if r.Target.Command != "" {
				heading += ": " + r.Target.Command
			}
		}
		t.heading(heading)
		t.checks(rest[:n])
		rest = rest[n:]
	}
	if r.Target != nil && len(r.Target.Modules) > 0 {
		t.modules(r.Target.Modules)
	}
	t.fixes(r.Fixes)
	return t.w.Flush()
}

// page writes lines of a width.
type page struct {
	w     *bufio.Writer
	width int
	color bool
}

func (t *page) line(s string) {
	t.w.WriteString(strings.TrimRight(s, " "))
	t.w.WriteByte('\n')
}

const bold = "1"

var stateColors = map[State]string{OK: "32", Limited: "33", No: "31"}

func (t *page) paint(code, s string) string {
	if !t.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// paintState returns a state's word in 7 columns.
func (t *page) paintState(s State) string {
	return t.paint(stateColors[s], string(s)) + strings.Repeat(" ", 7-len(s))
}

func (t *page) heading(s string) {
	t.line(t.paint(bold, cut(s, t.width)))
}

// verdict writes the conclusion in a sentence.
func (t *page) verdict(v Verdict) {
	for i, l := range wrap(v.Text, t.width-9) {
		first := strings.Repeat(" ", 7)
		if i == 0 {
			first = t.paintState(v.State)
		}
		t.line(first + "  " + t.paint(bold, l))
	}
}

func (t *page) engines(r *Report) {
	if len(r.Engines) == 0 {
		return
	}
	t.heading("engines, best first")
	name := 0
	for _, e := range r.Engines {
		name = max(name, len(e.Name))
	}
	for _, e := range r.Engines {
		text := e.Detail
		if e.Name == r.Engine {
			text = "chosen: " + text
		}
		t.row(e.State, []string{e.Name, text}, []int{name})
	}
	t.line("")
}

func (t *page) checks(rows []Check) {
	name, seen := 0, 0
	for _, c := range rows {
		name, seen = max(name, columns(c.Name)), max(seen, columns(c.Seen))
	}
	room := t.width - name - 13
	if seen = min(seen, max(12, room*2/5)); room-2-seen < leastText {
		seen = max(12, room-2) // the meaning goes below
	}
	for _, c := range rows {
		t.row(c.State, []string{c.Name, c.Seen, c.Means}, []int{name, seen})
	}
	t.line("")
}

// row writes a state and cells; all but the last have a width, each is wrapped within its own. On
// narrow terminals the last cell goes below the others.
func (t *page) row(state State, cells []string, widths []int) {
	const gap = 2
	at := 2 + 7 + gap
	for _, w := range widths {
		at += w + gap
	}
	last := cells[len(cells)-1]
	below := t.width-at < leastText
	if at > t.width { // not even the others fit side by side
		cells, widths = []string{strings.Join(cells[:len(widths)], "  "), last}, []int{t.width - 11}
	}
	var columnsOf [][]string
	for i, w := range widths {
		columnsOf = append(columnsOf, wrap(cells[i], w))
	}
	if !below {
		columnsOf = append(columnsOf, wrap(last, t.width-at))
	}
	height := 1
	for _, c := range columnsOf {
		height = max(height, len(c))
	}
	for i := range height {
		var b strings.Builder
		b.WriteString("  ")
		if i == 0 {
			b.WriteString(t.paintState(state))
		} else {
			b.WriteString(strings.Repeat(" ", 7))
		}
		for k, c := range columnsOf {
			s := ""
			if i < len(c) {
				s = c[i]
			}
			b.WriteString(strings.Repeat(" ", gap) + s)
			if k < len(widths) {
				b.WriteString(strings.Repeat(" ", max(0, widths[k]-columns(s))))
			}
		}
		t.line(b.String())
	}
	if below {
		for _, l := range wrap(last, t.width-11) {
			t.line(strings.Repeat(" ", 11) + l)
		}
	}
}

func (t *page) modules(all []Module) {
	t.heading("symbols by module")
	head := []string{"SYMBOLS", "LINES", "UNWIND", "MODULE"}
	symbols := len(head[0])
	for _, m := range all {
		symbols = max(symbols, len(m.Symbols))
	}
	t.row("", head, []int{symbols, len(head[1]), len(head[2])})
	shown := 0
	for _, s := range []State{No, Limited, OK} { // what can be improved comes first
		for _, m := range all {
			if m.State != s {
				continue
			}
			if shown++; shown > rowsOfModules {
				continue
			}
			name := m.Path
			if m.Package != "" {
				name += "  (" + m.Package + ")"
			}
			if m.Note != "" {
				name += "  (" + m.Note + ")"
			}
			t.row(m.State, []string{m.Symbols, yes(m.Lines), yes(m.Unwind), name}, []int{symbols, len(head[1]), len(head[2])})
		}
	}
	if shown > rowsOfModules {
		t.line(fmt.Sprintf("  and %d more; --json lists all", shown-rowsOfModules))
	}
	t.line("")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (t *page) fixes(all []Fix) {
	if len(all) == 0 {
		return
	}
	t.heading("what to change")
	for _, f := range all {
		for _, l := range wrap(f.Gain, t.width-4) {
			t.line("  # " + l)
		}
		// A command is never wrapped: it is there to be copied.
		t.line("  " + t.paint(bold, f.Command))
	}
}

// columns returns how many columns s takes, counting each character as one.
func columns(s string) int { return utf8.RuneCountInString(s) }

func cut(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width-1, 0)]) + "…"
}

// wrap breaks text between words into lines of at most width columns; a word that is longer is
// broken too. It returns at least one line.
func wrap(text string, width int) []string {
	width = max(width, 8)
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		for columns(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			r := []rune(word)
			lines, word = append(lines, string(r[:width])), string(r[width:])
		}
		switch {
		case line == "":
			line = word
		case columns(line)+1+columns(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}
