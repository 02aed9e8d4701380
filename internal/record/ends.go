package record

import (
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/target"
)

// ends follows those targets that were given by number until they end.
type ends struct {
	start  time.Time // of sampling
	living []*target.Witness
	seen   []End
}

// watch takes hold of the targets. One that cannot be held is refused elsewhere.
func (e *ends) watch(pids []int) {
	for _, pid := range pids {
		if w := target.Watch(pid); w != nil {
			e.living = append(e.living, w)
		}
	}
}

// tell takes what the engine saw of a process's end.
func (e *ends) tell(pid int, o target.Outcome) {
	for _, w := range e.living {
		if w.PID == pid {
			w.Tell(o)
		}
	}
}

func (e *ends) close() {
	for _, w := range e.living {
		w.Close()
	}
	e.living = nil
}

// passing is how long the kernel may take from letting a process's parent know how it
// ended to letting others know.
const passing = 100 * time.Millisecond

// lookEnds looks which targets have ended, and tells of each if there are several. With
// no patience one of which it is not known how is left for later: the engine may be about
// to tell.
func (s *session) lookEnds(patience time.Duration) {
	e := &s.ends
	left := e.living[:0]
	for _, w := range e.living {
		o, over := w.Ended(patience)
		if !over || !o.Known && patience == 0 {
			left = append(left, w)
			continue
		}
		w.Close()
		end := End{PID: w.PID, After: time.Since(e.start), Outcome: o}
		e.seen = append(e.seen, end)
		if len(s.o.PIDs) > 1 {
			s.o.Log(fmt.Sprintf("process %d %v after %v", end.PID, o, rounded(end.After)))
		}
	}
	clear(e.living[len(left):])
	e.living = left
}

// lastEnds tells how the recording ended, if it was by its targets.
func (s *session) lastEnds(all bool) []End {
	s.lookEnds(passing)
	seen, after := s.ends.seen, rounded(time.Since(s.ends.start))
	before := ""
	if s.o.Duration > 0 {
		before = fmt.Sprintf(", before the %v had passed", s.o.Duration)
	}
	switch {
	case !all:
	case len(s.o.PIDs) > 1:
		s.o.Log(fmt.Sprintf("the targets ended after %v%s", after, before))
	case len(seen) > 0:
		s.o.Log(fmt.Sprintf("the target %v after %v%s", seen[0].Outcome, after, before))
	default:
		s.o.Log(fmt.Sprintf("the target ended after %v%s", after, before))
	}
	return seen
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
