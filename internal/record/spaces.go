package record

import (
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
)

// spaces follows the address spaces of all processes that the engine tells of, so
// that a program can be walked and named that ended before it could be looked at.
// A process costs a few words until it maps something of its own.
type spaces struct {
	byPID map[uint32]*target.Space
	ended []endedSpace         // the first first
	young map[uint32]time.Time // when a program was begun; for a while

	hurry time.Time // samples are wanted soon until then
}

type endedSpace struct {
	pid   uint32
	space *target.Space
	at    time.Time
}

// A program that generates code, such as a Java VM, must be looked at while it lives.
// How long it will live nobody knows, so while it is young it is looked at often;
// and whether a program that has just begun is one of these has to be found out.
const (
	hurriedly = 10 * time.Millisecond
	unclear   = 100 * time.Millisecond // after an Exec
	youth     = time.Second
	maxYoung  = 1 << 12
)

// maxSpaces bounds the processes that are followed.
const maxSpaces = 1 << 16

func newSpaces() *spaces {
	return &spaces{byPID: map[uint32]*target.Space{}, young: map[uint32]time.Time{}}
}

// of gives what is known of a process, nil for nothing.
func (s *spaces) of(pid uint32) *target.Space { return s.byPID[pid] }

// notice takes what happened to a process.
func (s *spaces) notice(n *capture.Notice) {
	switch n.Kind {
	case capture.Fork:
		if n.PID != n.Parent {
			s.put(n.PID, s.have(n.Parent).Fork())
		}
	case capture.Exec:
		s.byPID[n.PID].Lose(int(n.PID))
		s.put(n.PID, &target.Space{Whole: true})
		s.began(n.PID, time.Now())
	case capture.Mmap:
		switch {
		case n.PID == 0:
			s.missed()
		case n.Mapping.End > n.Mapping.Start:
			s.have(n.PID).Map(n.Mapping)
			if born, ok := s.young[n.PID]; ok && fleeting(&n.Mapping) {
				s.until(born.Add(youth))
			}
		}
	case capture.Exit:
		if n.Last || n.TID == n.PID {
			delete(s.young, n.PID)
		}
		if sp := s.byPID[n.PID]; sp != nil && (n.Last || n.TID == n.PID) {
			if n.Last {
				sp.Lose(int(n.PID))
			}
			s.ended = append(s.ended, endedSpace{n.PID, sp, time.Now()})
		}
	}
}

// began notes that a process has become another program.
func (s *spaces) began(pid uint32, now time.Time) {
	if len(s.young) >= maxYoung {
		clear(s.young)
	}
	s.young[pid] = now
	s.until(now.Add(unclear))
}

func (s *spaces) until(t time.Time) {
	if t.After(s.hurry) {
		s.hurry = t
	}
}

// fleeting says whether a mapping is a sign of code that is in no file.
func fleeting(m *target.Mapping) bool {
	return m.Anonymous() && m.Path == "" || strings.HasSuffix(m.Path, "/libjvm.so")
}

// have gives what is known of a process that is there.
func (s *spaces) have(pid uint32) *target.Space {
	sp := s.byPID[pid]
	if sp == nil {
		sp = target.Known(int(pid))
		s.put(pid, sp)
	}
	return sp
}

func (s *spaces) put(pid uint32, sp *target.Space) {
	if len(s.byPID) >= maxSpaces {
		clear(s.byPID)
		s.ended = nil
	}
	s.byPID[pid] = sp
}

// missed says that mappings were made that nobody told of.
func (s *spaces) missed() {
	for _, sp := range s.byPID {
		sp.Whole = false
	}
}

// sweep forgets those who ended some time ago.
func (s *spaces) sweep(now time.Time) {
	for pid, born := range s.young {
		if now.Sub(born) > youth {
			delete(s.young, pid)
		}
	}
	n := 0
	for ; n < len(s.ended) && now.Sub(s.ended[n].at) > lateSamples; n++ {
		if e := &s.ended[n]; s.byPID[e.pid] == e.space {
			delete(s.byPID, e.pid)
		}
	}
	s.ended = append(s.ended[:0], s.ended[n:]...)
}
