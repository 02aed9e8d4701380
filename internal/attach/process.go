// Package attach makes a process ready for its stacks to be walked and named:
// its memory, its native code, its runtime, and who names the frames of each.
package attach

import (
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/v8"
	"github.com/candid-profiler/candid/internal/walk"
)

// Process is a process whose stacks can be walked. It belongs to one goroutine.
type Process struct {
	Target *target.Process
	Native *native.Stepper
	VM     *hotspot.VM // nil: no Java VM, or one that cannot be read; see Notes
	Walker *walk.Walker
	Notes  []string // what cannot be had of this process, and why

	resolvers []symbol.Resolver // by walk.Frame.Owner
}

// Open attaches to a process; it stops nothing. files is shared by the processes
// of one run. The errors are those of target.Open.
func Open(pid int, files *native.Files) (*Process, error) {
	t, err := target.Open(pid)
	if err != nil {
		return nil, err
	}
	p := &Process{Target: t}
	if p.Native, err = native.New(t, files); err != nil {
		t.Close()
		return nil, fmt.Errorf("read the modules of process %d: %w", pid, err)
	}
	vm, err := hotspot.Open(t)
	switch {
	case err == nil:
		p.VM, p.Notes = vm, vm.Notes()
	case !errors.Is(err, hotspot.ErrNotHotSpot):
		p.Notes = append(p.Notes, fmt.Sprintf("its Java threads cannot be told: %v", err))
	}
	p.Walker = walk.New(cpu.Host(), p.Native)
	p.resolvers = []symbol.Resolver{nil}
	// A runtime's generated code is asked for first: its tables are exact there.
	if p.VM != nil {
		p.add(p.VM, p.VM)
	}
	names := symbol.NewNative(Places{p.Native}, t.RootPath)
	names.UsePerfMap(t.NamespacePID())
	var js v8.Finder
	if vm, err := js.Open(t, p.Native); err == nil {
		p.add(vm, vm.Resolver(names))
	}
	p.add(p.Native, names)
	return p, nil
}

func (p *Process) add(s walk.Stepper, r symbol.Resolver) {
	if int(p.Walker.Add(s)) == len(p.resolvers) {
		p.resolvers = append(p.resolvers, r)
	}
}

// Runtime is what the program is built on, as profiles have it: "hotspot
// 17.0.15"; "" for native programs.
func (p *Process) Runtime() string {
	if p.VM == nil {
		return ""
	}
	return "hotspot " + p.VM.Version()
}

// Resolve appends what a frame of the Walker's stands for to out, innermost
// first. Kernel frames are not its business; code that is nobody's is named
// [unknown].
func (p *Process) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	if int(f.Owner) < len(p.resolvers) && p.resolvers[f.Owner] != nil {
		return p.resolvers[f.Owner].Resolve(f, out)
	}
	return append(out, symbol.Frame{Function: "[unknown]", BCI: -1, Kind: f.Kind, Addr: f.PC, NoName: true})
}

// Close lets the process go.
func (p *Process) Close() error { return p.Target.Close() }
