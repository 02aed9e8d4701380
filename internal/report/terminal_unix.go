//go:build unix

package report

import (
	"os"

	"golang.org/x/sys/unix"
)

func terminalWidth(f *os.File) (width int, terminal bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(ws.Col), true
}
