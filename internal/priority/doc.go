// Package priority keeps candid in time on a crowded machine.
//
// Where hundreds of threads want each CPU, a thread of candid's that wakes waits
// for seconds until it is its turn: samples come late or not at all, and so does
// the end of a recording. candid needs little of a CPU, but it needs it soon, so
// its threads get a better nice level for as long as there is such a crowd. The
// level is not better than it takes for about a quarter of a CPU.
//
// All of candid's threads get the same level, and none a real-time policy: Go's
// scheduler hands work from one thread to another, and one that spins for what
// another holds, in whose place it runs, would spin until the kernel ends it.
package priority
