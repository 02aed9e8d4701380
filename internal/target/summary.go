package target

// Summary is a process's line in a list of processes.
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
	// Namespaced says that the process has its own pid namespace, as in a container.
	Namespaced bool
	// Reason is why it cannot be profiled; ReasonNone if no obstacle is known.
	Reason Reason
}
