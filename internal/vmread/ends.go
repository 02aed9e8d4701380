package vmread

import (
	"sync/atomic"
	"time"
)

// Ends is when the reads of one user, a recording, are given up at the latest, and how they are made.
// The zero value says that they have the usual patience. It may be used by several goroutines.
type Ends struct {
	by       atomic.Int64 // ns since began; 0: not set
	unlocked atomic.Bool
}

var began = time.Now()

// By makes calls that sleep be given up at t at the latest, whatever the usual patience is: it is for
// the end of a recording.
func (e *Ends) By(t time.Time) {
	e.by.Store(max(int64(t.Sub(began)), 1))
	select {
	case ending <- struct{}{}:
	default:
	}
}

// ending says that somebody's reads end soon.
var ending = make(chan struct{}, 1)

// passed reports whether the time has come. A nil Ends has none.
func (e *Ends) passed(now time.Duration) bool {
	if e == nil {
		return false
	}
	by := time.Duration(e.by.Load())
	return by != 0 && now >= by
}

// Unlocked says whether no goroutine that is locked to its thread (runtime.LockOSThread) reads for this
// user at present. Then reads cost far less. If one does all the same, candid ends with a fatal error.
func (e *Ends) Unlocked(yes bool) { e.unlocked.Store(yes) }

// switches reports whether callers can switch to a coroutine.
func (e *Ends) switches() bool { return e != nil && e.unlocked.Load() }
