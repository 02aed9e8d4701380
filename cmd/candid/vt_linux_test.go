package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// vt emulates as much of a terminal as a program that draws needs: it holds the screen after what
// was written. It remembers sequences that it does not know.
type vt struct {
	mu          sync.Mutex
	w, h        int
	cells       [][]string // "" is the right half of a wide character
	x, y        int
	top, bottom int             // scroll region, bottom included
	modes       map[string]bool // private and other modes, by number
	last        string          // the last drawn character
	pending     []byte          // the beginning of an incomplete sequence
	unknown     []string
	written     int
}

func newVT(w, h int) *vt {
	v := &vt{modes: map[string]bool{"?7": true, "?25": true}}
	v.resize(w, h)
	return v
}

func (v *vt) resize(w, h int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	cells := make([][]string, h)
	for y := range cells {
		cells[y] = slices.Repeat([]string{" "}, w)
		if y < len(v.cells) {
			copy(cells[y], v.cells[y])
		}
	}
	v.w, v.h, v.cells, v.top, v.bottom = w, h, cells, 0, h-1
	v.x, v.y = min(v.x, w-1), min(v.y, h-1)
}

// text returns the screen, without spaces at the ends of lines.
func (v *vt) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	for _, row := range v.cells {
		b.WriteString(strings.TrimRight(strings.Join(row, ""), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// changed returns the modes that are not as they were in the beginning.
func (v *vt) changed() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for m, on := range v.modes {
		if on != (m == "?7" || m == "?25") {
			out = append(out, fmt.Sprint(m, "=", on))
		}
	}
	return append(slices.Sorted(slices.Values(out)), v.unknown...)
}

func (v *vt) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.written += len(p)
	b := append(v.pending, p...)
	for len(b) > 0 {
		n := v.take(b)
		if n == 0 {
			break
		}
		b = b[n:]
	}
	v.pending = slices.Clone(b)
	return len(p), nil
}

// take draws what b begins with and returns its length, 0 if it is incomplete.
func (v *vt) take(b []byte) int {
	switch c := b[0]; {
	case c == 0x1b:
		return v.escape(b)
	case c == '\r':
		v.x = 0
	case c == '\n':
		v.feed()
	case c == '\b':
		v.x = max(v.x-1, 0)
	case c == '\t':
		v.x = min(v.x/8*8+8, v.w-1)
	case c < 0x20:
	default:
		if !utf8.FullRune(b) {
			return 0
		}
		r, n := utf8.DecodeRune(b)
		v.draw(string(r))
		return n
	}
	return 1
}

func (v *vt) draw(s string) {
	w := ansi.StringWidth(s)
	if w == 0 { // it combines with the one before
		if v.x > 0 {
			v.cells[v.y][v.x-1] += s
		}
		return
	}
	if v.x+w > v.w {
		if !v.modes["?7"] {
			v.x = v.w - w
		} else {
			v.x = 0
			v.feed()
		}
	}
	v.cells[v.y][v.x] = s
	if w == 2 {
		v.cells[v.y][v.x+1] = ""
	}
	v.x, v.last = v.x+w, s
}

func (v *vt) feed() {
	if v.y == v.bottom {
		v.scroll(v.top, 1)
		return
	}
	v.y = min(v.y+1, v.h-1)
}

func (v *vt) blank() []string { return slices.Repeat([]string{" "}, v.w) }

// scroll moves the lines from one line to the end of the region up, or down if n is negative.
func (v *vt) scroll(from, n int) {
	region := v.cells[from : v.bottom+1]
	for ; n > 0; n-- {
		copy(region, region[1:])
		region[len(region)-1] = v.blank()
	}
	for ; n < 0; n++ {
		copy(region[1:], region)
		region[0] = v.blank()
	}
}

func (v *vt) escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '[':
		return v.control(b)
	case ']', 'P', '_', '^': // a string that ends with BEL or ESC \
		for i := 2; i < len(b); i++ {
			if b[i] == 7 {
				return i + 1
			}
			if b[i] == 0x1b && i+1 < len(b) {
				return i + 2
			}
		}
		return 0
	case 'M':
		if v.y == v.top {
			v.scroll(v.top, -1)
		} else {
			v.y--
		}
	case '7', '8', '=', '>':
	case '(':
		return min(len(b), 3) / 3 * 3
	default:
		v.unknown = append(v.unknown, strconv.Quote(string(b[:2])))
	}
	return 2
}

// control handles a sequence that begins with ESC [.
func (v *vt) control(b []byte) int {
	end := slices.IndexFunc(b[2:], func(c byte) bool { return c >= 0x40 && c <= 0x7e })
	if end < 0 {
		return 0
	}
	end += 2
	text, final := string(b[2:end]), b[end]
	private := strings.HasPrefix(text, "?")
	if strings.ContainsAny(text, ">=<$ !") || final == 'u' || private && final != 'h' && final != 'l' {
		return end + 1 // queries the terminal, or sets its keyboard
	}
	var args []int
	for _, a := range strings.Split(strings.TrimPrefix(text, "?"), ";") {
		n, _ := strconv.Atoi(a)
		args = append(args, n)
	}
	arg := func(i, otherwise int) int {
		if i < len(args) && args[i] > 0 {
			return args[i]
		}
		return otherwise
	}
	n := arg(0, 1)
	row := v.cells[v.y]
	x := min(v.x, v.w-1)
	switch final {
	case 'm':
	case 'h', 'l':
		for _, a := range args {
			mode := strconv.Itoa(a)
			if private {
				mode = "?" + mode
			}
			v.modes[mode] = final == 'h'
			if mode == "?1049" {
				for y := range v.cells {
					v.cells[y] = v.blank()
				}
			}
		}
	case 'H', 'f':
		v.y, v.x = min(n, v.h)-1, min(arg(1, 1), v.w)-1
	case 'A':
		v.y = max(v.y-n, 0)
	case 'B':
		v.y = min(v.y+n, v.h-1)
	case 'C', 'a':
		v.x = min(v.x+n, v.w-1)
	case 'D':
		v.x = max(x-n, 0)
	case 'G', '`':
		v.x = min(n, v.w) - 1
	case 'd':
		v.y = min(n, v.h) - 1
	case 'I':
		v.x = min((v.x/8+n)*8, v.w-1)
	case 'Z':
		v.x = max(((x+7)/8-n)*8, 0)
	case 'X':
		copy(row[x:min(x+n, v.w)], v.blank())
	case 'P':
		copy(row[x:], row[min(x+n, v.w):])
		copy(row[max(v.w-n, x):], v.blank())
	case '@':
		n = min(n, v.w-x)
		copy(row[x+n:], row[x:])
		copy(row[x:x+n], v.blank())
	case 'b':
		for range n {
			v.draw(v.last)
		}
	case 'K':
		from, to := [...]int{x, 0, 0}[args[0]], [...]int{v.w, x + 1, v.w}[args[0]]
		copy(row[from:to], v.blank())
	case 'J':
		from, to := 0, v.h
		switch args[0] {
		case 0:
			copy(row[x:], v.blank())
			from = v.y + 1
		case 1:
			copy(row[:x+1], v.blank())
			to = v.y
		}
		for y := from; y < to; y++ {
			v.cells[y] = v.blank()
		}
	case 'L':
		v.scroll(v.y, -min(n, v.h))
	case 'M':
		v.scroll(v.y, min(n, v.h))
	case 'S':
		v.scroll(v.top, min(n, v.h))
	case 'T':
		v.scroll(v.top, -min(n, v.h))
	case 'r':
		v.top, v.bottom = n-1, min(arg(1, v.h), v.h)-1
		v.x, v.y = 0, 0
	case 'g', 'W', 'q', 't', 'n', 'c':
	default:
		v.unknown = append(v.unknown, strconv.Quote(string(b[:end+1])))
	}
	return end + 1
}

// writes returns how many bytes were written to the terminal.
func (v *vt) writes() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.written
}

// modesOn lists the modes that are on.
func (v *vt) modesOn() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	on := maps.Clone(v.modes)
	maps.DeleteFunc(on, func(_ string, set bool) bool { return !set })
	return slices.Sorted(maps.Keys(on))
}
