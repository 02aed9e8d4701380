// Package wine makes Wine one of candid's runtimes: the code of a Windows program is native code,
// but its threads have a second stack. Package internal/wine knows where.
package wine

import (
	"errors"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/wine"
)

// Runtime is Wine.
var Runtime = runtimes.Runtime{
	Kind:      runtimes.Wine,
	Functions: "functions of Windows programs", Threads: "threads of Windows programs", Programs: "Windows programs in Wine",
	Means:  "functions of Windows programs and libraries are named by their symbols and exports",
	Finder: func() runtimes.Finder { return &finder{} },
	Loads:  true,
}

// finder looks for Wine.
type finder struct{ _ byte } // not empty: each Finder has an address of its own

var (
	_ runtimes.Finder   = (*finder)(nil)
	_ runtimes.Instance = (*instance)(nil)
	_ runtimes.Follower = (*instance)(nil)
)

// Open implements runtimes.Finder.
func (*finder) Open(t *target.Process, code *native.Stepper) (runtimes.Instance, error) {
	p, err := wine.Open(t)
	switch {
	case errors.Is(err, wine.ErrNotWine):
		return nil, runtimes.Mark(err, runtimes.ErrAbsent)
	case errors.Is(err, wine.ErrNotReady), errors.Is(err, wine.ErrUnknown):
		// While the first thread is being set up it looks like that of an unknown release.
		return nil, runtimes.Mark(err, runtimes.ErrNotReady)
	case err != nil:
		return nil, err
	}
	return &instance{p, code}, nil
}

// Without implements runtimes.Finder.
func (*finder) Without(m target.Mapping) bool { return !wine.Library(m) }

// instance is the Wine of one process.
type instance struct {
	p    *wine.Process
	code *native.Stepper
}

// Follow implements runtimes.Follower.
func (i *instance) Follow() *capture.Follow {
	if i.code.RunsGo() {
		i.p.LearnGo()
	}
	return i.p.Follow()
}

// ThreadPointer implements runtimes.Follower.
func (i *instance) ThreadPointer(tid uint32) (uint64, bool) { return i.p.ThreadPointer(tid) }

// Title implements runtimes.Instance.
func (i *instance) Title() string { return "" }

// Stepper implements runtimes.Instance: Wine generates no code.
func (i *instance) Stepper() walk.Stepper { return none{} }

// Resolver implements runtimes.Instance.
func (i *instance) Resolver(native symbol.Resolver) symbol.Resolver { return native }

// ByRef implements runtimes.Instance.
func (i *instance) ByRef() bool { return false }

// BeginBatch implements runtimes.Instance.
func (i *instance) BeginBatch() {}

// Notes implements runtimes.Instance.
func (i *instance) Notes() []string { return nil }

// none is the stepper of no code.
type none struct{}

// Step implements walk.Stepper.
func (none) Step(*walk.Cursor) walk.Verdict { return walk.NotMine }

// Owns implements walk.Stepper.
func (none) Owns(uint64) bool { return false }
