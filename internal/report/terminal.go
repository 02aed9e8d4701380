package report

import "os"

// Terminal returns what Options.Width and Options.Color should be for a file: 0 and false unless it
// is a terminal. NO_COLOR (https://no-color.org) and TERM=dumb turn colour off.
func Terminal(f *os.File) (width int, color bool) {
	width, ok := terminalWidth(f)
	if !ok {
		return 0, false
	}
	return width, os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
