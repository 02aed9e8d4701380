// Package nativeimage makes GraalVM's native images one of candid's runtimes. The package of the
// same name beside package runtimes reads them.
package nativeimage

import (
	"errors"

	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/nativeimage"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Runtime is a Java program that GraalVM compiled ahead of time.
var Runtime = runtimes.Runtime{
	Kind:      runtimes.NativeImage,
	Functions: "Java methods", Threads: "Java threads", Programs: "native images",
	Means:   "Java methods are named, inlined ones too, with lines",
	AtStart: true,
	Finder:  func() runtimes.Finder { return &finder{} },
	Waits: map[string]profile.State{
		"jdk.internal.misc.Unsafe.park": profile.StateParked,
		"java.lang.Object.wait":         profile.StateWaiting,
		"java.lang.Object.wait0":        profile.StateWaiting,
	},
}

// finder looks for native images.
type finder struct{ nativeimage.Finder }

var _ runtimes.Finder = (*finder)(nil)

// Open implements runtimes.Finder.
func (f *finder) Open(t *target.Process, code *native.Stepper) (runtimes.Instance, error) {
	if code == nil {
		return nil, runtimes.ErrAbsent
	}
	vm, err := f.Finder.Open(t, code)
	if errors.Is(err, nativeimage.ErrNotImage) {
		return nil, runtimes.Mark(err, runtimes.ErrAbsent)
	}
	if err != nil {
		return nil, err
	}
	return instance{vm}, nil
}

// Without implements runtimes.Finder.
func (f *finder) Without(m target.Mapping) bool { return !f.May(m) }

// instance is the native images of one process.
type instance struct{ *nativeimage.VM }

var (
	_ runtimes.Instance    = instance{}
	_ runtimes.ThreadNamer = instance{}
)

// Title implements runtimes.Instance.
func (i instance) Title() string {
	if v := i.Version(); v != "" {
		return runtimes.NativeImage.String() + " " + v
	}
	return runtimes.NativeImage.String()
}

// Stepper implements runtimes.Instance.
func (i instance) Stepper() walk.Stepper { return i.VM }

// Resolver implements runtimes.Instance.
func (i instance) Resolver(native symbol.Resolver) symbol.Resolver { return i.VM.Resolver(native) }

// ByRef implements runtimes.Instance.
func (i instance) ByRef() bool { return false }

// BeginBatch implements runtimes.Instance: an image never changes.
func (i instance) BeginBatch() {}

// Kinds of threads.
const threadJava = "java"

// AskThreads implements runtimes.ThreadNamer. Only threads that were seen in Java code are known.
func (i instance) AskThreads() (names map[int]string, whole bool) { return i.ThreadNames(), false }

// Passing implements runtimes.ThreadNamer.
func (i instance) Passing(string) bool { return false }

// ThreadKind implements runtimes.ThreadNamer.
func (i instance) ThreadKind(_ uint32, name, _ string, _ bool) string {
	if name != "" {
		return threadJava
	}
	return runtimes.ThreadUnknown
}

// RunnerKind implements runtimes.ThreadNamer.
func (i instance) RunnerKind(string) string { return threadJava }
