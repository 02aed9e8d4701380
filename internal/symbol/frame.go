// Package symbol names the frames of a walked stack: function, file and line, and the functions
// that were inlined there.
package symbol

import "github.com/candid-profiler/candid/internal/walk"

// Frame is one logical frame: a physical frame stands for one or, with
// inlining, for several.
type Frame struct {
	// Function is the display name, demangled, with generated parts normalised so that stacks of
	// different runs merge: java.util.HashMap.get, std::vector<int>::push_back, do_syscall_64.
	Function string
	// Raw is the name before it was demangled or normalised, "" if it is the same.
	Raw string
	// Signature is the method's descriptor or parameter list, "" if unknown.
	Signature string
	// Module is the file or the part of a runtime that the code belongs to:
	// libjvm.so, [kernel], "" for managed code.
	Module string
	File   string // source file, "" if unknown
	Line   int32  // source line, 0 if unknown
	Start  int32  // source line on which the function is declared, 0 if unknown
	BCI    int32  // bytecode index, -1 if there is none
	Kind   walk.Kind
	Flags  walk.FrameFlags
	// Addr identifies the position for tools that work with addresses: for native code it is an
	// address of the file, else one of the process.
	Addr uint64
	// NoName says that the file has no symbol there; Function is module+offset.
	NoName bool
}

// Resolver names the frames that one Stepper found.
type Resolver interface {
	// Resolve appends the frames that f stands for to out, innermost first, and returns it. It
	// appends at least one frame, whatever f holds.
	Resolve(f walk.Frame, out []Frame) []Frame
}

// Preparer is a Resolver that may have to read a file before it can name a frame, which can take a
// second for a large one.
type Preparer interface {
	Resolver
	// Prepare reports whether Resolve would name f at once. If not, another goroutine starts to
	// read what it needs.
	Prepare(f walk.Frame) bool
}
