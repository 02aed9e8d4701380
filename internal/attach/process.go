// Package attach sets up a process so that its stacks can be walked and named: its memory, its
// native code, its runtimes, the walker, and the resolvers that name the frames of each.
package attach

import (
	"errors"
	"fmt"
	"os"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Options say how a process is set up. Only Files is needed.
type Options struct {
	Files   *native.Files   // shared by the processes of one run
	Finders *Finders        // look for runtimes; nil: none are looked for
	Arch    cpu.Arch        // of the process; 0: as it says itself
	Cache   *walk.WalkCache // of the walker
	Shared  *symbol.Shared  // names of files that several processes map
	// Open opens a file in the root of the process; nil: in candid's own.
	Open func(path string) (*os.File, error)
	// PerfMap opens the names that the process records of code that it generates; nil: there are
	// none.
	PerfMap func() (*os.File, error)
	// Clock is the clock of capture.Snapshot.Time, in ns; nil if there is none to compare with.
	Clock func() uint64
	// Names is called with the resolver of native code before it is used.
	Names func(*symbol.Native)
}

// Process is a program whose stacks can be walked and named. It is used from one goroutine.
type Process struct {
	Target   *target.Process
	Native   *native.Stepper
	Walker   *walk.Walker
	Names    *symbol.Native      // of native code
	Runtimes []runtimes.Instance // the runtimes found, in the order in which the Walker asks them
	Notes    []string            // what Open could not get of this process, and why

	o         Options
	found     []runtimes.Instance // by the place of their Finder
	wanted    []int               // indexes of Finders that have yet to find something
	resolvers []symbol.Resolver   // by walk.Frame.Owner
	byRef     []bool
	native    uint8 // the Owner of native frames
}

// Open attaches to a process and finds its runtimes, without stopping it. files is shared by the
// processes of one run. The errors are those of target.Open.
func Open(pid int, files *native.Files) (*Process, error) {
	t, err := target.Open(pid)
	if err != nil {
		return nil, err
	}
	p, err := New(t, Options{Files: files, Finders: NewFinders(), Open: t.OpenInRoot, PerfMap: t.OpenPerfMap})
	if err != nil {
		t.Close()
		return nil, err
	}
	_, missing := p.Look()
	for _, i := range p.Runtimes {
		p.Notes = append(p.Notes, i.Notes()...)
	}
	for _, m := range missing {
		if !errors.Is(m.Err, runtimes.ErrAbsent) {
			p.Notes = append(p.Notes, fmt.Sprintf("its %s cannot be told: %v", m.Runtime.Threads, m.Err))
		}
	}
	return p, nil
}

// New sets up a process with its native code only; Look finds its runtimes. t stays the caller's if
// New fails, and is closed by Close otherwise. The error says that the modules cannot be read.
func New(t *target.Process, o Options) (*Process, error) {
	code, err := native.New(t, o.Files)
	if err != nil {
		return nil, fmt.Errorf("read the modules of process %d: %w", t.PID, err)
	}
	if o.Arch == 0 {
		o.Arch = t.Arch()
	}
	p := &Process{Target: t, Native: code, o: o}
	if o.Finders != nil {
		p.found = make([]runtimes.Instance, len(o.Finders.of))
		for i := range o.Finders.of {
			p.wanted = append(p.wanted, i)
		}
	}
	p.build()
	return p, nil
}

// build makes the walker and the resolvers for the runtimes known so far. Runtimes are asked for
// generated code first, because their tables are exact there.
func (p *Process) build() {
	p.Walker = walk.New(p.o.Arch, p.Native)
	p.Walker.Cache = p.o.Cache
	p.Runtimes, p.resolvers, p.byRef = nil, []symbol.Resolver{nil}, []bool{false}
	p.Names = symbol.NewNative(Places{p.Native}, p.o.Open)
	if p.o.Shared != nil {
		p.Names.Share(p.o.Shared)
	}
	if p.o.Names != nil {
		p.o.Names(p.Names)
	}
	if p.o.PerfMap != nil {
		p.Names.UsePerfMap(p.o.PerfMap)
	}
	for _, i := range p.found {
		if i != nil {
			p.Runtimes = append(p.Runtimes, i)
			p.add(i.Stepper(), i.Resolver(p.Names), i.ByRef())
		}
	}
	p.native = p.add(p.Native, p.Names, false)
}

func (p *Process) add(s walk.Stepper, r symbol.Resolver, byRef bool) (owner uint8) {
	if owner = p.Walker.Add(s); int(owner) == len(p.resolvers) {
		p.resolvers, p.byRef = append(p.resolvers, r), append(p.byRef, byRef)
	}
	return owner
}

// NativeOwner returns the Owner of frames of native code.
func (p *Process) NativeOwner() uint8 { return p.native }

// Resolvers returns the resolvers that name the frames of the Walker, by their Owner, and whether
// the Ref of such a frame identifies it whatever its PC; see runtimes.Instance. They change when
// Look finds something.
func (p *Process) Resolvers() (of []symbol.Resolver, byRef []bool) { return p.resolvers, p.byRef }

// Title returns what the program is built on, as shown in profiles: "hotspot 17.0.15"; "" for
// native programs.
func (p *Process) Title() string {
	for _, i := range p.Runtimes {
		if t := i.Title(); t != "" {
			return t
		}
	}
	return ""
}

// BeginBatch makes the runtimes check or forget what may have changed.
func (p *Process) BeginBatch() {
	for _, i := range p.Runtimes {
		i.BeginBatch()
	}
}

// Resolve appends the frames that a frame of the Walker's stands for to out, innermost first. It
// does not handle kernel frames. Code of unknown origin is named [unknown].
func (p *Process) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	if int(f.Owner) < len(p.resolvers) && p.resolvers[f.Owner] != nil {
		return p.resolvers[f.Owner].Resolve(f, out)
	}
	return append(out, symbol.Frame{Function: "[unknown]", BCI: -1, Kind: f.Kind, Addr: f.PC, NoName: true})
}

// Close releases the process.
func (p *Process) Close() error { return p.Target.Close() }
