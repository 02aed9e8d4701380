package target

// Thread is one thread of a process.
type Thread struct {
	TID  int    // in candid's pid namespace
	Name string // as the kernel knows it (comm), at most 15 bytes
	CPU  uint64 // time it has run, ns, as the scheduler accounts it
}
