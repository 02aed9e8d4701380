package record

import (
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/target"
)

// lifetime estimates whether a process is one of the many on a machine that end soon: reading the
// source lines of its files would take longer than it lives. Its methods may be called from any
// goroutine.
type lifetime struct {
	target *target.Process
	hasty  *atomic.Bool // nothing more should be read
}

func lifetimeOf(p *process, hasty *atomic.Bool) *lifetime { return &lifetime{p.target, hasty} }

// grown is the age from which on a process is not expected to end soon.
const grown = time.Second

// age returns how long ago the process began. Its current program may have begun later.
func (f *lifetime) age() time.Duration {
	const tick = uint64(10 * time.Millisecond) // USER_HZ, the same on all machines
	began, now := f.target.StartTime*tick, monotonic()
	return time.Duration(now - min(began, now))
}

// mayEnd reports whether the process may end soon, or has.
func (f *lifetime) mayEnd() bool { return f.age() < grown || !f.target.Alive() }

// wantsLines waits until the process is grown or has ended, and reports whether it lives.
func (f *lifetime) wantsLines() bool {
	const look = 50 * time.Millisecond
	for f.target.Alive() && !f.hasty.Load() {
		left := grown - f.age()
		if left <= 0 {
			return true
		}
		time.Sleep(min(left, look))
	}
	return false
}
