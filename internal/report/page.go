package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/candid-profiler/candid/internal/walk"
)

// page writes lines with or without colour. It keeps its first error.
type page struct {
	w     *bufio.Writer
	width int
	color bool
}

func newPage(w io.Writer, o Options) *page {
	return &page{w: bufio.NewWriterSize(w, 32<<10), width: o.Width, color: o.Color}
}

func (pg *page) line(format string, args ...any) {
	fmt.Fprintf(pg.w, format, args...) // a bufio.Writer keeps its first error for Flush
	pg.w.WriteByte('\n')
}

const (
	bold = "\x1b[1m"
	dim  = "\x1b[2m"
	off  = "\x1b[0m"
)

// kindColors are those of the flame graph, as far as terminals have them.
var kindColors = [walk.NumKinds]string{
	walk.KindKernel:       "\x1b[33m",
	walk.KindNative:       "\x1b[31m",
	walk.KindInterpreted:  "\x1b[36m",
	walk.KindCompiled:     "\x1b[32m",
	walk.KindC1:           "\x1b[32m",
	walk.KindC2:           "\x1b[32m",
	walk.KindInlined:      "\x1b[34m",
	walk.KindStub:         "\x1b[35m",
	walk.KindNativeMethod: "\x1b[36m",
	walk.KindAOT:          "\x1b[32m",
	walk.KindTier0:        "\x1b[32m",
	walk.KindInstrumented: "\x1b[32m",
	walk.KindOSR:          "\x1b[32m",
	walk.KindTier1:        "\x1b[32m",
	walk.KindReadyToRun:   "\x1b[32m",
}

func (pg *page) paint(style, s string) string {
	if !pg.color || s == "" || style == "" {
		return s
	}
	return style + s + off
}

// clean makes a string from a foreign program safe for a terminal: whatever is
// not printable becomes a question mark.
func clean(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return strings.Map(func(r rune) rune {
				if unicode.IsPrint(r) {
					return r
				}
				return '?'
			}, s)
		}
	}
	return s
}

// Clean makes a string from a foreign program safe for a terminal: whatever is
// not printable becomes a question mark.
func Clean(s string) string { return clean(s) }

// Size formats a number of bytes as in reports.
func Size(n uint64) string { return size(n) }

// left and right pad to n columns.
func left(s string, n int) string {
	return s + strings.Repeat(" ", max(n-utf8.RuneCountInString(s), 0))
}
func right(s string, n int) string {
	return strings.Repeat(" ", max(n-utf8.RuneCountInString(s), 0)) + s
}

// room returns what is left of the width after used columns; 0 means no limit. Names get at least a
// few columns, however narrow the terminal.
func (pg *page) room(used int) int {
	if pg.width == 0 {
		return 0
	}
	return max(pg.width-used, 12)
}

// named returns a function's name, shortened to room, followed by its module.
func (pg *page) named(name, module, style string, room int) string {
	name, module = clean(name), clean(module)
	if at := strings.LastIndexByte(module, '/'); at >= 0 {
		module = module[at+1:]
	}
	// Without a symbol the name already begins with the module.
	if module == "" || strings.HasPrefix(name, module+"+") {
		return pg.paint(style, shorten(name, room))
	}
	if room > 0 {
		left := room - utf8.RuneCountInString(module) - 2
		if left < 12 || left < utf8.RuneCountInString(name)/2 {
			return pg.paint(style, shorten(name, room))
		}
		room = left
	}
	return pg.paint(style, shorten(name, room)) + "  " + pg.paint(dim, module)
}
