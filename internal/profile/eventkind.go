package profile

import "strings"

// EventKind is what the samples of an event are of. Code that treats events differently decides by
// their kind, never by their name, which users and other profilers choose.
type EventKind uint8

// The kinds of events.
const (
	// EventOther: none of the other kinds, or not known.
	EventOther EventKind = iota
	// EventCPU: all time on a CPU. The weights of a thread's samples can be compared with the time
	// that the kernel accounts to it.
	EventCPU
	// EventCPUPart: time on a CPU, but only that in user mode or in the kernel, or it is not known
	// that nothing is left out.
	EventCPUPart
	// EventCycles: cycles of the CPU, which are in proportion to the time on it.
	EventCycles
	// EventExecution: what threads that run execute, sampled at intervals of wall time that depend
	// on how many run; jdk.ExecutionSample of the JDK.
	EventExecution
	// EventSamples: something that the file does not name.
	EventSamples
	// EventTime: time, of which it is not known whether threads ran in it.
	EventTime
	// EventWall: time, on a CPU or not.
	EventWall
	// EventOffCPU: time in which a thread does not run.
	EventOffCPU
	// EventCounter: hits of a counter of the kernel or the CPU, other than cycles.
	EventCounter
	// EventTracepoint: passages of a tracepoint of the kernel.
	EventTracepoint
	// EventProbe: passages of a place in the code of a program.
	EventProbe
	// EventAlloc: memory allocated, by the runtime or by malloc.
	EventAlloc
	// EventLive: memory allocated and not freed.
	EventLive
	// EventLock: waiting for a lock that another thread holds.
	EventLock
	// EventWait: waiting for anything else: for a notification, for a time to pass.
	EventWait

	// NumEventKinds is how many kinds there are.
	NumEventKinds
)

var eventKindNames = [NumEventKinds]string{
	EventOther:      "other",
	EventCPU:        "cpu",
	EventCPUPart:    "cpu-part",
	EventCycles:     "cycles",
	EventExecution:  "execution",
	EventSamples:    "samples",
	EventTime:       "time",
	EventWall:       "wall",
	EventOffCPU:     "off-cpu",
	EventCounter:    "counter",
	EventTracepoint: "tracepoint",
	EventProbe:      "probe",
	EventAlloc:      "alloc",
	EventLive:       "live",
	EventLock:       "lock",
	EventWait:       "wait",
}

// String returns the name of the kind in files.
func (k EventKind) String() string {
	if k < NumEventKinds {
		return eventKindNames[k]
	}
	return eventKindNames[EventOther]
}

// ParseEventKind returns the kind whose String is name.
func ParseEventKind(name string) (EventKind, bool) {
	for k, n := range eventKindNames {
		if n == name {
			return EventKind(k), true
		}
	}
	return EventOther, false
}

// OnCPU reports whether samples of the kind occur in proportion to the time that a thread runs, all
// of it or a part.
func (k EventKind) OnCPU() bool { return k == EventCPU || k == EventCPUPart || k == EventCycles }

// CPUTime reports whether samples of the kind are of time on a CPU, all of it or a part.
func (k EventKind) CPUTime() bool { return k == EventCPU || k == EventCPUPart }

// Executing reports whether the samples of the kind show what running threads execute, which is
// also what samples that a file does not name are taken for.
func (k EventKind) Executing() bool {
	return k.OnCPU() || k == EventExecution || k == EventSamples
}

// StoredEventKind returns the kind of an event that a file of candid's describes: such a file says the
// kind, by its String, only if the name stands for another one.
func StoredEventKind(kind, name string) EventKind {
	if k, ok := ParseEventKind(kind); ok {
		return k
	}
	return EventKindOf(name)
}

// EventKindOf returns the kind that the name of an event stands for in files that do not say it:
// those that candid wrote before files had kinds, and those of other profilers. It is the only
// place that concludes a kind from a name. A name may have perf's modifiers, as in cycles:u.
func EventKindOf(name string) EventKind {
	if name == "cpu" {
		return EventCPU
	}
	base, _, more := strings.Cut(name, ":")
	k := kindsByName[base]
	if more && !k.OnCPU() && k != EventProbe {
		return EventOther // of a tracepoint such as lock:contention_begin
	}
	return k
}

var kindsByName = map[string]EventKind{
	"cpu":        EventCPUPart, // with a modifier
	"cpu-clock":  EventCPUPart,
	"task-clock": EventCPUPart,
	"cpu-time":   EventCPUPart,
	"itimer":     EventCPUPart, // async-profiler's, like ctimer
	"ctimer":     EventCPUPart,

	"cycles":     EventCycles,
	"cpu-cycles": EventCycles,

	"execution": EventExecution,
	"samples":   EventSamples,

	"time":        EventTime,
	"wall":        EventWall,
	"off-cpu":     EventOffCPU,
	"offcpu-time": EventOffCPU, // perf's

	"uprobe":    EventProbe, // with a place
	"uretprobe": EventProbe,

	// These are the names that candid gives to events of the JDK and of async-profiler.
	"alloc":       EventAlloc,
	"alloc-tlab":  EventAlloc,
	"malloc":      EventAlloc,
	"live":        EventLive,
	"lock":        EventLock,
	"native-lock": EventLock,
	"park":        EventWait,
	"wait":        EventWait,
	"sleep":       EventWait,

	// These are the sample types of Go's profiles.
	"alloc_space":   EventAlloc,
	"alloc_objects": EventAlloc,
	"inuse_space":   EventLive,
	"inuse_objects": EventLive,
	"contentions":   EventLock,
	"delay":         EventLock,
}
