package record

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/target"
)

// A program that generates code, such as a Java VM, must be examined while it lives. Nobody knows
// how long it will live, so while it is young it is examined often; and whether a program that has
// just begun is one of these has to be found out. On a machine that builds something, thousands
// begin that are not: what earlier processes of a file did predicts what the next one will do.
const (
	urgentBatch = 10 * time.Millisecond
	unclear     = 100 * time.Millisecond // after an Exec
	youth       = time.Second
	maxYoung    = 1 << 14
	// plainAfter is how many processes of a file must have ended without code that is in no file,
	// for later ones to be expected to be the same.
	plainAfter  = 2
	maxPrograms = 1 << 12
)

// births follows which programs begin, and reports whether they must be examined soon. It receives
// every event as soon as it is known, possibly from a goroutine other than the session's.
type births struct {
	mu          sync.Mutex
	programs    map[fileid.Named]*program
	running     map[uint32]born // processes that began while candid was watching
	urgentUntil time.Time       // samples are wanted soon until then
	maps        bool            // the engine reports mappings
	news        []*program      // programs to be reported to the engine
	prompted    atomic.Bool     // the engine reports events before it hands them over
}

// program is what is known of the processes of one file.
type program struct {
	key      fileid.Named
	told     bool // the engine takes it for ordinary
	plain    int  // number of processes that ended and had code from files only
	fleeting bool // some processes had other code
}

// ordinary reports whether the program's code is expected to be all in files.
func (p *program) ordinary() bool { return p != nil && !p.fleeting && p.plain >= plainAfter }

// born is a process that executed its program while candid was watching.
type born struct {
	program  *program // nil before its file is mapped
	at       time.Time
	forked   bool // it is a forked copy of such a process
	fleeting bool // it has code that is in no file
}

func newBirths() *births {
	return &births{programs: map[fileid.Named]*program{}, running: map[uint32]born{}}
}

// notice records an event of a process, and reports whether the process should be examined at once.
func (b *births) notice(n *capture.ProcessEvent, now time.Time) (soon bool) {
	if n.PID == 0 {
		return false // the process is not visible in candid's pid namespace, or mappings were missed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r, known := b.running[n.PID]
	switch n.Kind {
	case capture.Fork:
		if n.PID == n.Parent {
			return false
		}
		if r, known = b.running[n.Parent]; known {
			r.forked = true
			b.put(n.PID, r)
		} else {
			delete(b.running, n.PID)
		}
	case capture.Exec:
		// The program is known when its file is mapped, if that is reported.
		b.put(n.PID, born{at: now})
		if !b.maps {
			b.until(now.Add(unclear))
			return true
		}
	case capture.Mmap:
		m := &n.Mapping
		b.maps = b.maps || m.End > m.Start
		switch {
		case !known || m.End <= m.Start:
			return false
		case fleeting(m):
			r = b.generate(r)
			b.running[n.PID] = r
			if now.Sub(r.at) < youth {
				b.until(r.at.Add(youth))
				return true
			}
		case r.program == nil && m.FileBacked():
			r.program = b.of(m.File())
			b.running[n.PID] = r
			if !r.program.ordinary() {
				b.until(r.at.Add(unclear))
				return true
			}
		}
	case capture.Exit:
		if !n.Last && n.TID != n.PID {
			return r.fleeting
		}
		if n.Last {
			delete(b.running, n.PID)
			if known && !r.fleeting && !r.forked && r.program != nil {
				r.program.plain++
				b.new(r.program)
			}
		}
		return r.fleeting || !r.program.ordinary()
	}
	return false
}

// generates records that a process has code that is in no file.
func (b *births) generates(pid uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(pid, b.generate(b.running[pid]))
}

func (b *births) generate(r born) born {
	r.fleeting = true
	if r.program != nil && !r.program.fleeting {
		r.program.fleeting = true
		b.new(r.program)
	}
	return r
}

// new queues a program about which more is known.
func (b *births) new(p *program) {
	if p.ordinary() != p.told && len(b.news) < maxPrograms {
		b.news = append(b.news, p)
	}
}

// tell tells the engine which programs have become ordinary, and which no longer are.
func (b *births) tell(engine capture.WakeupFilter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.news {
		// A program that cannot be passed to the engine costs some wakeups.
		if is := p.ordinary(); is != p.told && engine.Plain(p.key.Dev, p.key.Inode, is) == nil {
			p.told = is
		}
	}
	clear(b.news)
	b.news = b.news[:0]
}

func (b *births) put(pid uint32, r born) {
	if len(b.running) >= maxYoung {
		clear(b.running)
	}
	b.running[pid] = r
}

func (b *births) of(k fileid.Named) *program {
	p := b.programs[k]
	if p == nil {
		if len(b.programs) >= maxPrograms {
			clear(b.programs)
		}
		p = &program{key: k}
		b.programs[k] = p
	}
	return p
}

func (b *births) until(t time.Time) {
	if t.After(b.urgentUntil) {
		b.urgentUntil = t
	}
}

// urgent reports whether samples are wanted soon.
func (b *births) urgent(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.urgentUntil)
}

// Prompt implements capture.Prompter.
func (s *session) Prompt(n *capture.ProcessEvent) bool {
	s.births.prompted.Store(true)
	return s.births.notice(n, time.Now())
}

// fleeting reports whether a mapping indicates code that is in no file.
func fleeting(m *target.Mapping) bool {
	return m.Anonymous() && m.Path == "" || strings.HasSuffix(m.Path, "/libjvm.so")
}
