package target

// Spaces follows the address spaces of many processes by the forks, execs and executable mappings
// that the kernel reports, in their order. A process costs a few words until it maps something of its
// own. It is used from one goroutine.
type Spaces struct {
	byPID   map[uint32]*Space
	first   func(pid uint32) *Space
	cleared func()
	held    int // mappings that only one Space has
}

// Bounds of Spaces: of processes, and of the mappings of all of them, because each fork may get a list
// of its own. If there are more, all are forgotten.
const (
	MaxSpaces = 1 << 16
	maxHeld   = 4 << 20
)

// NewSpaces returns Spaces without a process. first returns the Space of a process of which nothing
// has been reported, and cleared, which may be nil, is called when all are forgotten.
func NewSpaces(first func(pid uint32) *Space, cleared func()) *Spaces {
	return &Spaces{byPID: map[uint32]*Space{}, first: first, cleared: cleared}
}

// Of returns what is known of a process, nil for nothing.
func (s *Spaces) Of(pid uint32) *Space { return s.byPID[pid] }

// Len returns how many processes are followed.
func (s *Spaces) Len() int { return len(s.byPID) }

// Have returns the Space of an existing process.
func (s *Spaces) Have(pid uint32) *Space {
	sp := s.byPID[pid]
	if sp == nil {
		sp = s.first(pid)
		s.put(pid, sp)
	}
	return sp
}

// Fork says that a process was forked from another one, and returns its Space.
func (s *Spaces) Fork(pid, parent uint32) *Space {
	sp := s.Have(parent).Fork()
	s.put(pid, sp)
	return sp
}

// Exec says that a process executes another program, and returns its new Space.
func (s *Spaces) Exec(pid uint32) *Space {
	s.byPID[pid].Lose(int(pid))
	sp := &Space{Whole: true}
	s.put(pid, sp)
	return sp
}

// Map says that a process has made a mapping, and returns its Space.
func (s *Spaces) Map(pid uint32, m Mapping) *Space {
	sp := s.Have(pid)
	sp.Map(m)
	s.held += len(sp.list) - sp.held
	sp.held = len(sp.list)
	return sp
}

// Missed says that mappings were made that nobody reported: no Space is whole any more.
func (s *Spaces) Missed() {
	for _, sp := range s.byPID {
		sp.Whole = false
	}
}

// Forget forgets a process, unless its PID belongs to another Space by now.
func (s *Spaces) Forget(pid uint32, sp *Space) {
	if s.byPID[pid] == sp {
		delete(s.byPID, pid)
		s.held -= sp.held
	}
}

func (s *Spaces) put(pid uint32, sp *Space) {
	if old := s.byPID[pid]; old != nil {
		s.held -= old.held
	} else if len(s.byPID) >= MaxSpaces || s.held > maxHeld {
		clear(s.byPID)
		s.held = 0
		if s.cleared != nil {
			s.cleared()
		}
	}
	s.byPID[pid] = sp
}
