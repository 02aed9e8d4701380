package record

import (
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/target"
)

// lifetime knows whether a process is one of the many of a machine that end soon: the
// source lines of its files would take longer to read than it lives. Its methods may be
// called from any goroutine.
type lifetime struct {
	target *target.Process
	hasty  *atomic.Bool // nothing more shall be read
}

func lifetimeOf(p *process, hasty *atomic.Bool) *lifetime { return &lifetime{p.target, hasty} }

// grown is how old a process is that is not fleeting.
const grown = time.Second

// age is how long ago the process began. What it runs now may have begun later.
func (f *lifetime) age() time.Duration {
	const tick = uint64(10 * time.Millisecond) // the kernel's unit for programs, on all machines
	began, now := f.target.StartTime*tick, monotonic()
	return time.Duration(now - min(began, now))
}

// mayEnd reports whether the process may end soon, or has.
func (f *lifetime) mayEnd() bool { return f.age() < grown || !f.target.Alive() }

// wantsLines waits until the process has grown or ended, and reports whether it lives.
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
