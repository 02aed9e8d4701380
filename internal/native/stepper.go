package native

import (
	"time"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/golang"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Stepper steps over one process's native code. It implements walk.Stepper and
// walk.Code, and is used from one goroutine.
//
// The Ref of its frames has the index of the module in the upper 32 bits; the
// lower are 0. See Locate.
type Stepper struct {
	process    *target.Process
	files      *Files
	modules    []*Module
	byKey      map[key]uint32
	areas      []area // by address
	last       area
	generation uint32 // of areas
	changed    uint32 // the generation in which an area that was known was last changed or unmapped
	refreshed  time.Time
	now        func() time.Time
	reader     *codeReader          // nil until code has to be read
	runsGo     bool                 // Go code was seen
	cutting    bool                 // a frame that a signal interrupted is being appended
	heads      map[key]*File        // files that may be PE images, by their first mapping; nil: none
	cache      []entry              // a power of two
	shift      uint8                // 64 minus its logarithm
	fills      int                  // since it grew
	sizes      map[uint64]frameSize // by the address at which frames stopped
	sizesOf    uint32               // the generation that they belong to
	registered registered
}

// entry is what is known of one address.
type entry struct {
	at         uint64
	rule       *ehframe.Rule // nil: none
	goes       *golang.Rule  // nil: no Go code
	ref        uint64
	bias       uint64 // of Go code
	generation uint32
	prov       walk.Provenance // of the rule
	kind       walk.Kind
	lasting    bool // it holds until its area is changed or unmapped, whatever else is mapped
	clones     bool // the code has just started a thread
	signal     bool // the code is a signal's trampoline
	windows    bool // the code is a PE image's
	first      bool // the code is where the program was entered, or a thread; it has no caller
}

// The cache holds a program's hot call sites and leaf addresses, entries of 64 bytes. Most programs
// are small and short.
const (
	firstBits = 7
	cacheBits = 12
)

// refreshInterval is how often unknown addresses may cause the mappings to be read again: a read
// takes 0.2 to 2 ms.
const refreshInterval = 100 * time.Millisecond

// New returns a Stepper for p, which stays the caller's. files is shared by the Steppers of all
// processes.
func New(p *target.Process, files *Files) (*Stepper, error) {
	s := &Stepper{process: p, files: files, byKey: map[key]uint32{}, generation: 1, now: time.Now}
	s.cache, s.shift = make([]entry, 1<<firstBits), 64-firstBits
	if sp := p.Space(); sp != nil && sp.Whole {
		s.take(sp.Mappings())
	} else if err := s.Refresh(); err != nil {
		return nil, err
	}
	s.refreshed = s.now()
	p.Memory().FallBack(s.fromFile)
	return s, nil
}

// grow makes the cache larger.
func (s *Stepper) grow() {
	const times = 3 // as a power of two
	bits := min(64-s.shift+times, cacheBits)
	s.cache, s.shift, s.fills = make([]entry, 1<<bits), 64-bits, 0
}

// Forget frees the memory of what is known of single addresses, which is found again when it is
// needed.
func (s *Stepper) Forget() {
	s.cache, s.shift, s.fills = make([]entry, 1<<firstBits), 64-firstBits, 0
	s.sizes, s.sizesOf, s.reader = nil, 0, nil
}

// Executable reports whether addr lies in memory that is known to be executable. Unlike Owns it
// does not look for new mappings, so that guesses may call it for any word.
func (s *Stepper) Executable(addr uint64) bool {
	_, ok := s.find(addr)
	return ok
}

// Owns reports whether pc lies in executable memory. It must be called after the steppers of
// runtimes, which know their generated code better.
func (s *Stepper) Owns(pc uint64) bool {
	if _, ok := s.find(pc); ok {
		return true
	}
	return s.unknown(pc)
}

// Frame returns the frame of an address that another walk found; false if it is in no known
// executable memory. flags may say that it is a return address.
func (s *Stepper) Frame(pc uint64, flags walk.FrameFlags) (walk.Frame, bool) {
	at := pc
	if flags&walk.ReturnAddress != 0 {
		at--
	}
	a, ok := s.find(at)
	if !ok {
		return walk.Frame{PC: pc, Flags: flags}, false
	}
	m := s.modules[a.module]
	if !m.loaded {
		s.load(m)
	}
	return walk.Frame{PC: pc, Ref: uint64(a.module) << 32, Kind: m.kind(), Flags: flags}, true
}

// RunsGo reports whether Go code was seen on a stack.
func (s *Stepper) RunsGo() bool { return s.runsGo }

// unknown checks whether addr has become known, unless it has done so recently.
func (s *Stepper) unknown(addr uint64) bool {
	if addr < 4096 || addr >= 1<<56 {
		return false
	}
	now := s.now()
	if now.Sub(s.refreshed) < refreshInterval {
		return false
	}
	s.refreshed = now
	if s.Refresh() != nil {
		return false
	}
	_, ok := s.find(addr)
	return ok
}

// Step steps over one frame.
func (s *Stepper) Step(c *walk.Cursor) walk.Verdict {
	pc := c.Regs.PC
	at := pc
	flags := walk.FrameFlags(0)
	if !c.Leaf {
		// The call may be the last instruction of its function.
		at--
		flags = walk.ReturnAddress
	}
	e := &s.cache[at*0x9e3779b97f4a7c15>>s.shift&uint64(len(s.cache)-1)]
	if e.at != at || !s.holds(e) {
		if s.fills++; s.fills > 2*len(s.cache) && s.shift > 64-cacheBits {
			s.grow()
			e = &s.cache[at*0x9e3779b97f4a7c15>>s.shift&uint64(len(s.cache)-1)]
		}
		if !s.fill(c, e, at, pc) {
			return walk.NotMine
		}
	}
	f := c.Stack.Next()
	f.PC, f.Ref, f.Owner, f.Kind, f.Prov, f.Flags = pc, e.ref, 0, e.kind, c.Prov, flags
	if r := e.rule; r != nil {
		if e.prov != walk.Exact {
			if e.clones && newborn(c) {
				return walk.Done
			}
			if e.prov == walk.Heuristic && s.started(c) {
				return walk.Stepped
			}
			return s.derived(c, r, e.prov)
		}
		if r.Signal {
			sp, high := c.Regs.SP(), c.High
			if v := follow(c, r); v != walk.Stepped {
				return v
			}
			return s.interrupted(c, sp, high)
		}
		if v := follow(c, r); v != walk.Stuck {
			if len(c.Regions) > 0 {
				changeStack(c)
			}
			if e.windows && c.Regs.PC == 0 {
				return walk.Done // as the first function of a thread of Windows is entered
			}
			return v
		}
		return s.sized(c, e, r)
	}
	if r := e.goes; r != nil {
		return r.Step(c, s, e.bias)
	}
	if e.signal {
		f.Flags = 0 // it was not called
		return s.signalFrame(c)
	}
	if e.first {
		return walk.Done
	}
	if s.started(c) {
		return walk.Stepped
	}
	return walk.Stuck
}

// holds reports whether an entry is still right.
func (s *Stepper) holds(e *entry) bool {
	return e.generation == s.generation || e.lasting && e.generation >= s.changed
}

// fill finds out everything about the instruction at an address.
func (s *Stepper) fill(c *walk.Cursor, e *entry, at, pc uint64) bool {
	a, ok := s.find(at)
	if !ok {
		if !s.unknown(at) {
			return false
		}
		a = s.last
	}
	m := s.modules[a.module]
	if !m.loaded {
		s.load(m)
	}
	*e = entry{at: at, ref: uint64(a.module) << 32, generation: s.generation, kind: m.kind(), lasting: a.constant && m.File != nil}
	if m.File != nil && m.File.goes != nil && !c.Leaf {
		// A return address that no call has left, so the code before it is another function's.
		if e.signal = trampoline(c, pc); e.signal {
			return true
		}
	}
	if m.File != nil && m.File.goes != nil {
		if e.goes = m.File.goes.Lookup(at - m.Bias); e.goes != nil {
			e.bias = m.Bias
			s.runsGo = true
			if e.goes.Role == golang.Trampoline {
				e.goes, e.signal = nil, true
			}
			return true
		}
	}
	if m.File != nil && m.File.table != nil {
		if e.rule = m.File.table.Lookup(at - m.Bias); e.rule != nil {
			e.rule = wineRule(c, m, e.rule, pc)
			return true
		}
	}
	if e.signal = trampoline(c, pc); e.signal {
		return true
	}
	if e.first = begins(c, pc); e.first {
		return true
	}
	if s.reader == nil {
		s.reader = new(codeReader)
	}
	mem, arch := s.process.Memory(), c.Regs.Arch
	if m.File != nil && m.File.image != nil && arch == cpu.AMD64 {
		e.windows = true
		e.rule, e.prov = s.peRule(c, m, a, at, pc)
		return true
	}
	if m.File == nil && arch == cpu.AMD64 {
		if e.rule = s.registeredRule(at, pc, c.Leaf); e.rule != nil {
			// It was read after the sample, and is not kept: such code may be replaced.
			e.prov, e.kind, e.generation = walk.Derived, walk.KindCompiled, s.generation-1
			return true
		}
	}
	if m.File != nil && m.File.Entry != 0 && s.reader.entered(arch, mem, m.File.Entry+m.Bias, at) {
		e.first = true
		return true
	}
	if arch == cpu.AMD64 {
		if e.rule = s.reader.rule(mem, at, pc, a.start, a.end); e.rule != nil {
			e.prov = m.proof(mem, at, s.reader.weak)
			e.clones = clones(mem, pc)
		}
	}
	return true
}
