package target

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

func signalName(s syscall.Signal) string { return fmt.Sprintf("signal %d", int(s)) }

// witnessSystem holds a process open, so that its exit code can be read when it has ended.
type witnessSystem struct{ handle windows.Handle }

// Watch opens a process to find out how it ends; nil if there is none, or it is not permitted.
func Watch(pid int) *Witness {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return nil
	}
	return &Witness{PID: pid, sys: witnessSystem{h}}
}

// Close releases the process.
func (w *Witness) Close() {
	if w == nil || w.sys.handle == 0 {
		return
	}
	windows.CloseHandle(w.sys.handle)
	w.sys.handle = 0
}

// Tell sets the outcome that another observer has seen.
func (w *Witness) Tell(o Outcome) { w.told = o }

// Ended reports whether the process has ended, and how.
func (w *Witness) Ended(time.Duration) (Outcome, bool) {
	if w.told.Known {
		return w.told, true
	}
	if w.sys.handle == 0 || !hasEnded(w.sys.handle) {
		return Outcome{}, false
	}
	return exitOutcome(w.sys.handle), true
}

func exitOutcome(h windows.Handle) Outcome {
	var code uint32
	if windows.GetExitCodeProcess(h, &code) != nil {
		return Outcome{}
	}
	return Outcome{Known: true, Code: int(code)}
}
