// Package coreclr knows the code that .NET's runtime, CoreCLR, generates or maps in other
// processes: which method an address belongs to, what it is called, and how to get to its caller.
//
// CoreCLR registers all managed code in one map from addresses to sections (sections.go). A section
// is a heap of generated code, in which a map of nibbles leads from an address to the start of its
// method and that to the method's description (nibble.go, code.go); an image of code compiled ahead
// of time, ReadyToRun, with a sorted table of functions (ready.go); or a range of stubs (stub.go).
// On every system the code of methods is described by Windows' unwind information, which package
// winunwind reads. So callers are exact, in prologues and epilogues too.
//
// Names come from a method's MethodDesc, its type's MethodTable (method.go, types.go) and the
// metadata of its module (module.go), which package climeta reads.
//
// A VM works in batches, as package hotspot does: samples that were taken before BeginBatch are
// walked and resolved before the next. Code that the runtime may free, of dynamic methods and of
// collectible assemblies, is compared with the process before it is used in a batch (code.go).
//
// Offsets are those that the runtime publishes in its contract descriptor (descriptor.go) as far as
// it does, and otherwise rows of a table with their sources (layout.go).
package coreclr
