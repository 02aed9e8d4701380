package main

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// stopSignals end a recording and save it.
var stopSignals = []os.Signal{os.Interrupt}

// passedSignals is empty: a console sends its signals to every program on it.
var passedSignals []os.Signal

func fromTerminal(os.Signal) bool { return true }

func signalNumber(os.Signal) int { return 2 }

func isTerminal(f *os.File) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}

// terminalWidth returns the width of the terminal that w is, or 0.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info) != nil {
		return 0
	}
	return int(info.Window.Right-info.Window.Left) + 1
}
