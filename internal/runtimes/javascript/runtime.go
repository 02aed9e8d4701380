// Package javascript makes V8, the JavaScript engine of node, one of candid's runtimes.
// Package v8 reads it.
package javascript

import (
	"errors"

	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/v8"
	"github.com/candid-profiler/candid/internal/walk"
)

// Runtime is V8 in node.
var Runtime = runtimes.Runtime{
	Kind:      runtimes.Node,
	Functions: "JavaScript functions", Threads: "JavaScript threads", Programs: "JavaScript processes",
	Means:   "JavaScript functions are named, with the scripts that they are in, but without lines",
	AtStart: true,
	Finder:  func() runtimes.Finder { return &finder{} },
}

// finder looks for V8.
type finder struct{ v8.Finder }

var _ runtimes.Finder = (*finder)(nil)

// Open implements runtimes.Finder.
func (f *finder) Open(t *target.Process, code *native.Stepper) (runtimes.Instance, error) {
	if code == nil {
		return nil, runtimes.ErrAbsent
	}
	vm, err := f.Finder.Open(t, code)
	if errors.Is(err, v8.ErrNotV8) {
		return nil, runtimes.Mark(err, runtimes.ErrAbsent)
	}
	if err != nil {
		return nil, err
	}
	return instance{vm}, nil
}

// Without implements runtimes.Finder.
func (f *finder) Without(m target.Mapping) bool { return !v8.MayHold(m) }

// instance is the V8 of one process.
type instance struct{ *v8.VM }

var _ runtimes.Instance = instance{}

// Title implements runtimes.Instance: recordings do not mention V8.
func (i instance) Title() string { return "" }

// Stepper implements runtimes.Instance.
func (i instance) Stepper() walk.Stepper { return i.VM }

// Resolver implements runtimes.Instance.
func (i instance) Resolver(native symbol.Resolver) symbol.Resolver { return i.VM.Resolver(native) }

// ByRef implements runtimes.Instance.
func (i instance) ByRef() bool { return false }

// Notes implements runtimes.Instance.
func (i instance) Notes() []string { return nil }
