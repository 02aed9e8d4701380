package suspend

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// reminder is the signal that ends a sampling thread's wait for a stop. No other code sends it, and
// Go's handler for it does nothing.
const reminder = unix.Signal(44)

// sigaction is the kernel's struct sigaction on amd64 and arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// Flags of a sigaction (asm-generic/signal-defs.h).
const (
	noChildStop = 1          // SA_NOCLDSTOP
	restart     = 0x10000000 // SA_RESTART
)

// prepareSignals keeps the kernel from sending SIGCHLD to candid at every stop of a traced thread
// (the end of a child is reported as before), and lets the reminder interrupt the call during which
// it arrives: Go's handlers have calls restarted, so that no other signal ends a wait.
func prepareSignals() {
	changeSignal(unix.SIGCHLD, noChildStop, 0)
	changeSignal(reminder, 0, restart)
}

// changeSignal sets and clears flags of a signal that has a handler.
func changeSignal(sig unix.Signal, set, drop uint64) {
	var a sigaction
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&a)), 8, 0, 0); errno != 0 {
		return
	}
	const handled = 2 // after SIG_DFL and SIG_IGN
	flags := a.flags&^drop | set
	if a.handler < handled || flags == a.flags {
		return
	}
	a.flags = flags
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&a)), 0, 8, 0, 0)
}

// remind ends the wait of a sampling thread that has waited for a stop for long, so that it checks
// by itself, and reports whether it did.
func (w *worker) remind(now int64) bool {
	t := w.waiting.Load()
	if t == 0 || now-max(t, w.roused) <= slowStop {
		return false
	}
	w.roused = now
	_ = unix.Tgkill(unix.Getpid(), int(w.thread.Load()), reminder)
	return true
}
