package record

import (
	"cmp"
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
)

// Slowed implements capture.Pacer: sampling at another rate than requested is reported at once, and
// in the recording.
func (s *session) Slowed(c capture.Slowed) {
	if c.Times > 1 {
		c.Why = cmp.Or(c.Why, "candid gets too little of the CPUs to walk more")
	}
	s.slowed.Store(&c)
	at := since(c.Time, s.start)
	if c.Times <= 1 {
		s.say(fmt.Sprintf("sampling as often as asked for again, from %v on", at))
		return
	}
	period := s.period * time.Duration(c.Times)
	if c.First {
		s.say(fmt.Sprintf("sampling %d times less often at first, every %v, until it shows how much candid can walk", c.Times, period.Round(time.Microsecond)))
		return
	}
	s.say(fmt.Sprintf("sampling %d times less often from %v on, every %v: %s; what is recorded stands for all of the time", c.Times, at, period.Round(time.Microsecond), c.Why))
}

// Pace returns how many times less often than requested is sampled now, 1 or more, and why. It may be called from
// any goroutine.
func (r *Recording) Pace() (times int, why string) {
	if c := r.s.slowed.Load(); c != nil && c.Times > 1 {
		return c.Times, c.Why
	}
	return 1, ""
}

// say prints a message now, and keeps it with the part that is being recorded.
func (s *session) say(line string) {
	addNote(s.b.Meta(), line)
	s.o.Log(line)
}

// lossNotes describes when samples were lost in a part that began at start.
func lossNotes(losses []capture.Loss, start uint64) []string {
	const most = 8
	var notes []string
	for i, l := range losses {
		if i == most {
			return append(notes, fmt.Sprintf("samples were lost in %d stretches of time more", len(losses)-most))
		}
		notes = append(notes, fmt.Sprintf("%d samples were lost between %v and %v after recording began", l.Samples, since(l.From, start), since(l.To, start)))
	}
	return notes
}

// since returns how long after the start something happened.
func since(at, start uint64) time.Duration {
	return time.Duration(max(at, start) - start).Round(10 * time.Millisecond)
}
