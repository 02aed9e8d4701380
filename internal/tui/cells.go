package tui

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/candid-profiler/candid/internal/report"
)

// Styles are attributes and the terminal's own sixteen colours, which suit light and dark
// backgrounds. If colour is not wanted the program omits the colours.
const (
	bold    = "\x1b[1m"
	dim     = "\x1b[2m"
	reverse = "\x1b[7m"
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	off     = "\x1b[0m"
)

func paint(style, s string) string {
	if s == "" || style == "" {
		return s
	}
	return style + s + off
}

func plain(_, text string) string { return text }

// styleOf returns how the parts of a line are painted: the chosen line is shown in reverse video,
// in one colour.
func styleOf(chosen bool) func(style, text string) string {
	if chosen {
		return plain
	}
	return paint
}

func itoa(n int) string { return strconv.Itoa(n) }

// width returns how many columns a string takes.
func width(s string) int { return ansi.StringWidth(s) }

// left and right pad a string to n columns, or cut it to that.
func left(s string, n int) string {
	s = cut(s, n)
	return s + strings.Repeat(" ", max(n-width(s), 0))
}

func right(s string, n int) string {
	s = cut(s, n)
	return strings.Repeat(" ", max(n-width(s), 0)) + s
}

// cut shortens a string to n columns at its end.
func cut(s string, n int) string {
	if n <= 0 {
		return ""
	}
	return ansi.Truncate(s, n, "…")
}

// tail shortens a string to n columns at its beginning: the end of a name carries most information.
func tail(s string, n int) string {
	w := width(s)
	switch {
	case n <= 0:
		return ""
	case w <= n:
		return s
	}
	// A wide character at the edge is removed as a whole.
	out := ansi.TruncateLeft(s, w-n+1, "…")
	for extra := w - n + 2; width(out) > n; extra++ {
		out = ansi.TruncateLeft(s, extra, "…")
	}
	return out
}

// name makes a name chosen by the target safe and short enough to draw.
func name(s string) string {
	const most = 1000
	if len(s) > most {
		s = "…" + strings.ToValidUTF8(s[len(s)-most:], "")
	}
	return report.Clean(s)
}

// base returns a module without its directories.
func base(module string) string { return module[strings.LastIndexByte(module, '/')+1:] }

// few is the number of samples below which shares are marked as rough: in 19 of 20 tables of so
// many samples, chance alone makes a share of 10 % stand for 6 to 17 %.
const few = 100

// rough formats a share of so many samples, marked if they are few.
func rough(part float64, samples uint64) string {
	if samples < few {
		return "~" + share(part)
	}
	return share(part)
}

// roughly explains the mark, "" if nothing has it: what a share of a tenth may stand for (Wilson's
// interval of 95 %).
func roughly(samples uint64) string {
	if samples == 0 || samples >= few {
		return ""
	}
	const z, p = 1.96, 0.1
	n := float64(samples)
	middle, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	of := 1 + z*z/n
	noun := "samples"
	if samples == 1 {
		noun = "sample"
	}
	return fmt.Sprintf("~: shares of only %d %s: 10%% may be %.0f%% to %.0f%%", samples, noun, 100*(middle-half)/of, 100*(middle+half)/of)
}

// share formats a share in five columns.
func share(part float64) string {
	return strconv.FormatFloat(part*100, 'f', 1, 64) + "%"
}

var bars = []rune(" ▁▂▃▄▅▆▇█")

// sparkline draws the newest n values, one column each; full is the value of a whole column.
func sparkline(values []uint64, n int, full float64) string {
	if n <= 0 {
		return ""
	}
	if len(values) > n {
		values = values[len(values)-n:]
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", n-len(values)))
	for _, v := range values {
		i := 0
		if v > 0 && full > 0 {
			// Anything above zero is visible.
			i = min(max(int(float64(v)/full*float64(len(bars)-1)+0.5), 1), len(bars)-1)
		}
		b.WriteRune(bars[i])
	}
	return b.String()
}
