package record

import (
	"fmt"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/target"
)

// ends follows the targets that were given by PID until they end.
type ends struct {
	start  time.Time // start of sampling
	living []*target.Witness
	seen   []End
}

// watch starts to watch the targets. Those that cannot be watched are refused elsewhere.
func (e *ends) watch(pids []int) {
	for _, pid := range pids {
		if w := target.Watch(pid); w != nil {
			e.living = append(e.living, w)
		}
	}
}

// tell records what the engine saw of a process's end.
func (e *ends) tell(pid int, o target.Outcome) {
	for _, w := range e.living {
		if w.PID == pid {
			w.Tell(o)
		}
	}
}

// drop stops watching a target.
func (e *ends) drop(pid int) {
	e.living = slices.DeleteFunc(e.living, func(w *target.Witness) bool {
		if w.PID == pid {
			w.Close()
		}
		return w.PID == pid
	})
}

func (e *ends) close() {
	for _, w := range e.living {
		w.Close()
	}
	e.living = nil
}

// passing is how long it may take from when the kernel reports to a process's parent how it ended
// until others can know.
const passing = 100 * time.Millisecond

// lookEnds checks which targets have ended, and reports each if there are several. With no
// patience, a target whose way of ending is not known yet is left for later: the engine may be
// about to report it.
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

// lastEnds prints how the recording ended, if its targets ended it.
func (s *session) lastEnds(all bool) {
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
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
