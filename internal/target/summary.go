package target

// Summary is what a list of processes shows of one.
type Summary struct {
	PID, PPID int
	UID       int    // effective, -1 if unknown
	User      string // name of UID, or its number
	StartTime uint64 // clock ticks since boot
	Comm      string
	Cmdline   []string // nil if it could not be read or is empty
	Exe       string   // "" if it could not be read
	Threads   int
	Zombie    bool
	// Namespaced: the process has its own pid namespace, as in a container.
	Namespaced bool
	// Reason says why it cannot be profiled; ReasonNone if nothing is known to
	// forbid it.
	Reason Reason
}
