package attach

import (
	"errors"
	"os"
	"testing"

	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// stub is a runtime whose code begins at an address. It is found if err is nil.
type stub struct {
	at      uint64
	err     error
	opened  int
	batches int
}

var (
	_ runtimes.Finder   = (*stub)(nil)
	_ runtimes.Instance = (*stub)(nil)
	_ walk.Stepper      = (*stub)(nil)
)

func (s *stub) Open(*target.Process, *native.Stepper) (runtimes.Instance, error) {
	if s.opened++; s.err != nil {
		return nil, runtimes.Mark(errors.New("stub"), s.err)
	}
	return s, nil
}
func (s *stub) Without(target.Mapping) bool              { return s.at == 0 }
func (s *stub) Title() string                            { return "" }
func (s *stub) Stepper() walk.Stepper                    { return s }
func (s *stub) Resolver(symbol.Resolver) symbol.Resolver { return s }
func (s *stub) ByRef() bool                              { return s.at == 1 }
func (s *stub) BeginBatch()                              { s.batches++ }
func (s *stub) Notes() []string                          { return nil }
func (s *stub) Owns(pc uint64) bool                      { return pc >= s.at }
func (s *stub) Step(*walk.Cursor) walk.Verdict           { return walk.Done }
func (s *stub) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	return append(out, symbol.Frame{Function: "stub", Addr: s.at})
}

// Runtimes are asked in the order of the table, whichever is found first, and before native code.
// One that belongs to the program from its beginning is looked for once.
func TestLook(t *testing.T) {
	self, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	late, second, never := &stub{at: 1, err: runtimes.ErrAbsent}, &stub{at: 2}, &stub{at: 3, err: runtimes.ErrAbsent}
	finders := &Finders{of: []finder{
		{&runtimes.Runtime{Threads: "late"}, late}, {&runtimes.Runtime{Threads: "second"}, second}, {&runtimes.Runtime{AtStart: true}, never},
	}}
	p, err := New(self, Options{Files: native.NewFiles(), Finders: finders})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	order := func(want ...walk.Stepper) {
		t.Helper()
		of, byRef := p.Resolvers()
		if len(of) != len(want)+1 || len(byRef) != len(of) {
			t.Fatalf("%d resolvers, %d of frames by Ref, not %d", len(of), len(byRef), len(want)+1)
		}
		for i, s := range want {
			if p.Walker.Stepper(uint8(i+1)) != s {
				t.Errorf("stepper %d is %T, not %T", i+1, p.Walker.Stepper(uint8(i+1)), s)
			}
		}
	}
	order(p.Native)

	found, missing := p.Look()
	if len(found) != 1 || found[0].Instance != second || found[0].Runtime.Threads != "second" {
		t.Errorf("found: %v", found)
	}
	if len(missing) != 1 || missing[0].Runtime.Threads != "late" || !errors.Is(missing[0].Err, runtimes.ErrAbsent) || missing[0].Err.Error() != "stub" {
		t.Errorf("missing: %v", missing)
	}
	order(second, p.Native)
	if !p.Looking() || !p.MayFind() {
		t.Errorf("one may still come: looking %v, may find %v", p.Looking(), p.MayFind())
	}

	before := p.Walker
	if found, _ = p.Look(); len(found) != 0 || p.Walker != before {
		t.Errorf("found again: %v; another walker: %v", found, p.Walker != before)
	}
	late.err = nil
	if found, missing = p.Look(); len(found) != 1 || found[0].Instance != late || len(missing) != 0 {
		t.Errorf("found %v, missing %v", found, missing)
	}
	order(late, second, p.Native)
	if p.NativeOwner() != 3 {
		t.Errorf("native code's owner is %d", p.NativeOwner())
	}
	if _, byRef := p.Resolvers(); !byRef[1] || byRef[2] || byRef[3] {
		t.Errorf("by Ref: %v", byRef)
	}
	if p.Looking() || late.opened != 3 || second.opened != 1 || never.opened != 1 {
		t.Errorf("looking: %v; asked %d, %d and %d times", p.Looking(), late.opened, second.opened, never.opened)
	}
	if out := p.Resolve(walk.Frame{Owner: 2}, nil); len(out) != 1 || out[0].Addr != second.at {
		t.Errorf("a frame of the second runtime: %v", out)
	}
	if p.BeginBatch(); late.batches != 1 || second.batches != 1 || never.batches != 0 {
		t.Errorf("batches: %d, %d, %d", late.batches, second.batches, never.batches)
	}
}
