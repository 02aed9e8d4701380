// Package priority keeps candid responsive on a crowded machine.
//
// If hundreds of threads want each CPU, a thread of candid's that wakes waits for seconds until it
// runs: samples come late or not at all, and so does the end of a recording. candid needs little
// CPU time, but it needs it soon, so its threads get a better nice level for as long as the machine
// is crowded. The level is no better than needed for about a quarter of a CPU.
//
// All of candid's threads get the same level, and none gets a real-time policy: Go's scheduler
// passes work from one thread to another, and a real-time thread that spins for something held by a
// thread that it has preempted would spin until the kernel kills it.
package priority
