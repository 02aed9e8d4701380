// Package clrgc reads from outside what the garbage collector of .NET (CoreCLR 8 to 10) knows of its
// work: how often it ran, how long the program stood still for it, how large the heap is.
//
// Where the collector keeps this is published nowhere, but its interface is: a table of functions whose
// order does not change, because collectors may be exchanged (src/coreclr/gc/gcinterface.h in
// dotnet/runtime: IGCHeap). So candid executes those of these functions that only read, by package
// emulate, on a copy of the memory that they ask for. Nothing runs in the process; what such a function
// stores, such as a lock that it takes, stays in candid.
package clrgc
