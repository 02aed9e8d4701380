// Package java makes HotSpot, the OpenJDK's virtual machine, one of candid's runtimes. Package
// hotspot reads the VM; this package adapts it to the interfaces of package runtimes.
package java

import (
	"errors"
	"strings"

	"github.com/candid-profiler/candid/internal/hotspot"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Runtime is HotSpot.
var Runtime = runtimes.Runtime{
	Kind:      runtimes.Hotspot,
	Functions: "Java methods", Threads: "Java threads", Programs: "Java processes",
	Means:    "Java methods are named, interpreted and compiled ones, with lines",
	Launched: true,
	Finder:   func() runtimes.Finder { return finder{hotspot.NewFinder()} },
	Launch:   withFlags,
	Waits: map[string]profile.State{
		"jdk.internal.misc.Unsafe.park": profile.StateParked,
		"sun.misc.Unsafe.park":          profile.StateParked,
		"java.lang.Object.wait":         profile.StateWaiting,
		"java.lang.Object.wait0":        profile.StateWaiting,
	},
	// HotSpot's runtime/objectMonitor.cpp and runtime/synchronizer.cpp.
	Locks: []string{"ObjectMonitor::enter", "ObjectMonitor::EnterI", "ObjectMonitor::Enter", "ObjectMonitor::ReenterI", "ObjectMonitor::reenter"},
}

// finder looks for Java VMs.
type finder struct{ *hotspot.Finder }

var _ runtimes.Finder = finder{}

// Open implements runtimes.Finder.
func (f finder) Open(t *target.Process, _ *native.Stepper) (runtimes.Instance, error) {
	vm, err := f.Finder.Open(t)
	switch {
	case err == nil:
		return &instance{VM: vm}, nil
	case errors.Is(err, vmstructs.ErrNotHotSpot):
		err = runtimes.Mark(err, runtimes.ErrAbsent)
	case errors.Is(err, vmstructs.ErrNotReady):
		err = runtimes.Mark(err, runtimes.ErrNotReady)
	}
	return nil, err
}

// instance is the Java VM of one process. The VM itself is the stepper and the resolver.
type instance struct {
	*hotspot.VM
	observer observer
}

var (
	_ runtimes.Instance     = (*instance)(nil)
	_ runtimes.Follower     = (*instance)(nil)
	_ runtimes.Clocked      = (*instance)(nil)
	_ runtimes.Learner      = (*instance)(nil)
	_ runtimes.Adviser      = (*instance)(nil)
	_ runtimes.ThreadNamer  = (*instance)(nil)
	_ runtimes.LockWaiter   = (*instance)(nil)
	_ runtimes.Observed     = (*instance)(nil)
	_ runtimes.Configured   = (*instance)(nil)
	_ runtimes.ThreadDumper = (*instance)(nil)
)

// Title implements runtimes.Instance.
func (i *instance) Title() string { return runtimes.Hotspot.String() + " " + i.Version() }

// Stepper implements runtimes.Instance.
func (i *instance) Stepper() walk.Stepper { return i.VM }

// Resolver implements runtimes.Instance.
func (i *instance) Resolver(symbol.Resolver) symbol.Resolver { return i.VM }

// ByRef implements runtimes.Instance.
func (i *instance) ByRef() bool { return true }

// SetClock implements runtimes.Clocked.
func (i *instance) SetClock(now func() uint64) { i.Clock = now }

// Advice implements runtimes.Adviser.
func (i *instance) Advice() string {
	if v, ok := i.Flag("DebugNonSafepoints"); !ok || v != "false" {
		return ""
	}
	return "without DebugNonSafepoints: shares inside inlined code are rough, and marked (coarse); launch with " + strings.Join(jvmFlags, " ")
}
