// Package hotspot reads a HotSpot Java virtual machine from outside its
// process: where its generated code lies, how to step over its frames, and
// which methods they stand for. Layouts come from the tables that the VM
// publishes about itself (gHotSpotVM*), by name, per process; nothing that is
// published is hard-coded. All memory of the target is taken as hostile.
//
// vmstructs.go, codeheap.go, nmethod.go, pcdesc.go, scopes.go, method.go,
// heapobject.go and threads.go read; stepper.go, leaf_amd64.go,
// interpreter.go, entry.go and continuation.go step; resolve.go names.
package hotspot
