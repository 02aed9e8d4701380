//go:build !linux && !windows

package target

import (
	"fmt"
	"syscall"
	"time"
)

func signalName(s syscall.Signal) string { return fmt.Sprintf("signal %d", int(s)) }

type witnessSystem struct{}

// HaveChildren returns false: only Linux lists the children of a process.
func HaveChildren([]int) bool { return false }

// Stopped returns false: only Linux has a process say it.
func Stopped(int) bool { return false }

// Watch returns nil, which witnesses nothing: only Linux tells how a process that is no child ended.
func Watch(int) *Witness { return nil }

// Close does nothing.
func (w *Witness) Close() {}

// Tell does nothing.
func (w *Witness) Tell(Outcome) {}

// Ended returns nothing.
func (w *Witness) Ended(time.Duration) (Outcome, bool) { return Outcome{}, false }
