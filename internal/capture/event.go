package capture

// EventKind is what triggers a sample.
type EventKind uint8

// Kinds of events.
const (
	CPUTime    EventKind = iota // time on a CPU
	Counter                     // a software or hardware counter of the kernel's perf events
	Tracepoint                  // a named place in the kernel
	Probe                       // a place in a program's or library's code
	OffCPU                      // time in which a thread sleeps
	Wall                        // time: running, ready to run, or asleep
)

// Types of counters, PERF_TYPE_* of linux/perf_event.h.
const (
	TypeHardware = 0
	TypeSoftware = 1
	TypeCache    = 3
	TypeRaw      = 4
)

// Event is one thing to sample by. Package event parses it from what users write.
type Event struct {
	Name string // as the user gave it: "cpu", "page-faults", "sched:sched_switch"
	Kind EventKind
	Unit string // of Snapshot.Weight: "nanoseconds", "count"

	// Period is how many hits of a Counter, a Tracepoint or a Probe make a sample. 0: for a
	// Counter, as many as make Options.Period between two samples of a CPU; for the others, one.
	Period   uint64
	NoUser   bool // do not count in user mode
	NoKernel bool // do not count in the kernel

	Type   uint32 // of a Counter: TypeSoftware and the like
	Config uint64 // of a Counter: perf_event_attr.config

	Point Point // of a Tracepoint
	Place Place // of a Probe
}

// Point is a tracepoint: "sched:sched_switch" is {"sched", "sched_switch"}.
type Point struct{ System, Name string }

// Place is where a probe is set.
type Place struct {
	Library  string // a file name as it is mapped ("libc.so.6"), or a path in the target's root
	Function string // an ELF symbol; "": Offset is from the start of the file
	Offset   uint64 // bytes from there
	Return   bool   // at the function's return
}

// State is what a thread was doing when it was sampled, as the kernel sees it.
type State uint8

// Values of State.
const (
	Running         State = iota // on a CPU
	Runnable                     // ready to run, waiting for a CPU
	Sleeping                     // waiting for something; a signal can end the wait
	Uninterruptible              // waiting, mostly for a disk or a page
)
