//go:build !linux

package target

import (
	"fmt"
	"syscall"
	"time"
)

func signalName(s syscall.Signal) string { return fmt.Sprintf("signal %d", int(s)) }

type witnessSystem struct{}

// HaveChildren returns false: it is not implemented here yet.
func HaveChildren([]int) bool { return false }

// Watch returns nil: it is not implemented here yet.
func Watch(int) *Witness { return nil }

// Close does nothing.
func (w *Witness) Close() {}

// Tell does nothing.
func (w *Witness) Tell(Outcome) {}

// Ended returns nothing.
func (w *Witness) Ended(time.Duration) (Outcome, bool) { return Outcome{}, false }
