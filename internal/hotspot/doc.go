// Package hotspot reads a HotSpot Java virtual machine from outside its
// process: where its generated code lies, how to step over its frames, and
// which methods they stand for. Layouts come from the tables that the VM
// publishes about itself (gHotSpotVM*), by name, per process; nothing that is
// published is hard-coded. All memory of the target is taken as hostile.
//
// Package vmstructs finds the VM and its tables, metadata reads its classes and objects, threads its
// threads, hsperfdata its counters; simulate executes code on the copy. Here, codeheap.go,
// nmethod.go, pcdesc.go, scopes.go, method.go and lines.go read; stepper.go, leaf_x86.go,
// interpreter.go, entry.go and continuation.go step; resolve.go names.
//
// A VM works in batches: the samples that were taken before BeginBatch are walked and resolved
// before the next BeginBatch. No cached value is used in a batch before it was compared with the
// process in that batch, so that code and classes that went away are noticed. Values in constant
// use are compared in one read at the beginning of the batch.
package hotspot
