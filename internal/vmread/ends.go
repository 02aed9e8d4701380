package vmread

import (
	"sync/atomic"
	"time"
)

// Ends is when the reads of one user, a recording, are given up at the latest. The zero value says
// that they have the usual patience. It may be used by several goroutines.
type Ends struct{ by atomic.Int64 } // ns since began; 0: not set

var began = time.Now()

// By makes calls that sleep be given up at t at the latest, whatever the usual patience is: it is for
// the end of a recording.
func (e *Ends) By(t time.Time) { e.by.Store(max(int64(t.Sub(began)), 1)) }

// passed reports whether the time has come. A nil Ends has none.
func (e *Ends) passed(now time.Duration) bool {
	if e == nil {
		return false
	}
	by := time.Duration(e.by.Load())
	return by != 0 && now >= by
}
