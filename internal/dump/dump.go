// Package dump shows what every thread of a process is doing now: its stack, its state, what it
// waits for and who holds that. Sleeping threads are not stopped; running threads are stopped for
// the microseconds in which their registers and their stack are copied.
package dump

import (
	"regexp"
	"time"

	"github.com/candid-profiler/candid/internal/runtimes"
)

// Schema names the JSON form of a Dump. Fields may be added, but no field changes its meaning.
const Schema = "candid.dump/1"

// Options say what to examine.
type Options struct {
	PIDs       []int          // processes, at least one
	Threads    *regexp.Regexp // keep only threads with such a name; nil: all
	JavaFrames bool           // of threads that run Java code keep only its frames
	Patience   time.Duration  // how long to try for a thread that runs; 0 is half a second

	// Async bounds the look for asynchronous methods that are pending; nil: they are not looked for.
	Async *runtimes.AsyncLimits
}

// Dump is one snapshot of all threads. The threads of a process are read one after the other, so
// their stacks are not from the very same moment.
type Dump struct {
	Schema    string    `json:"schema"`
	Time      time.Time `json:"time"`
	Host      string    `json:"host"`
	TookMS    float64   `json:"took_ms"` // for this snapshot, without attaching
	Processes []Process `json:"processes"`
}

// Process is one process.
type Process struct {
	PID       int        `json:"pid"`
	Command   string     `json:"command"`
	Runtime   string     `json:"runtime,omitempty"` // "hotspot 17.0.15"
	Threads   []Thread   `json:"threads"`
	Count     int        `json:"count"` // all threads
	Stops     Stops      `json:"stops"`
	Safepoint *Safepoint `json:"safepoint,omitempty"`
	Deadlocks [][]int    `json:"deadlocks,omitempty"` // tids, each waits for the next, the last for the first
	Async     *Async     `json:"async,omitempty"`
	Notes     []string   `json:"notes,omitempty"` // what could not be read, and why
}

// Stops is how long threads were stopped for this snapshot.
type Stops struct {
	Count    int     `json:"count"`
	MedianUS float64 `json:"median_us"`
	MaxUS    float64 `json:"max_us"`
}

// Safepoint is a pause of the Java VM that is in progress or about to begin.
type Safepoint struct {
	State     string  `json:"state"`               // "synchronizing", "synchronized"
	SinceMS   float64 `json:"since_ms,omitempty"`  // 0: not known
	Operation string  `json:"operation,omitempty"` // the VM's class for it: VM_G1CollectForAllocation
	WaitsFor  []int   `json:"waits_for,omitempty"` // tids of threads that are still in Java code
}

// How a thread was read.
const (
	ReadAsleep  = "asleep"  // from outside; it was not stopped and did not move
	ReadStopped = "stopped" // stopped, copied and resumed
	ReadNot     = "not"     // see Error
)

// Thread is one thread.
type Thread struct {
	TID    int    `json:"tid"`
	Name   string `json:"name"`              // the runtime's name, else the kernel's
	OSName string `json:"os_name,omitempty"` // the kernel's, if it differs
	Kind   string `json:"kind"`              // java, dotnet, pool, compiler, gc, vm, native
	CPU    uint64 `json:"cpu_ns"`            // time it has run

	State   string `json:"state"`             // running, runnable, sleeping, uninterruptible, stopped, traced, ended
	Syscall string `json:"syscall,omitempty"` // the system call that it is in

	Java   *Java   `json:"java,omitempty"`
	DotNet *DotNet `json:"dotnet,omitempty"`

	Read      string  `json:"read"`                 // asleep, stopped, not
	StoppedUS float64 `json:"stopped_us,omitempty"` // how long it was stopped
	Error     string  `json:"error,omitempty"`      // why there is no stack, or not all of it
	End       string  `json:"end,omitempty"`        // how the stack ends, if not at the thread's first frame
	Frames    []Frame `json:"frames"`               // innermost first
}

// DotNet is what .NET's runtime reports of a thread.
type DotNet struct {
	ID       int64  `json:"id,omitempty"` // Thread.ManagedThreadId
	WaitsFor *Lock  `json:"waits_for,omitempty"`
	Holds    []Lock `json:"holds,omitempty"`         // monitors and Locks that others wait to enter
	Changed  bool   `json:"locks_changed,omitempty"` // as in Java
}

// Java is what the Java VM reports of a thread.
type Java struct {
	ID       int64  `json:"id,omitempty"` // Thread.threadId
	Daemon   bool   `json:"daemon"`
	Priority int    `json:"priority,omitempty"`
	State    string `json:"state,omitempty"`    // as jstack has it: WAITING (parking)
	VMState  string `json:"vm_state,omitempty"` // in Java, in native code, in the VM, blocked in the VM

	WaitsFor *Lock  `json:"waits_for,omitempty"`
	Holds    []Lock `json:"holds,omitempty"` // monitors whose owner the VM names

	// Changed says that the thread ran between the reading of its stack and that of its locks on
	// every attempt, so that they need not belong together.
	Changed bool `json:"locks_changed,omitempty"`

	Virtual   *Virtual `json:"virtual,omitempty"`   // the virtual thread that it carries
	Compiling string   `json:"compiling,omitempty"` // the method that a compiler thread is compiling
	Tier      int      `json:"tier,omitempty"`      // tier that it is compiled for
}

// Lock is an object that threads wait for.
type Lock struct {
	How      string `json:"how"`             // to lock, waiting on, parking, held
	Class    string `json:"class"`           // of the object
	Address  uint64 `json:"address"`         // of the object now; the collector may move it
	Owner    string `json:"owner,omitempty"` // name of the thread that holds it
	OwnerTID int    `json:"owner_tid,omitempty"`

	OwnerVirtual *Virtual `json:"owner_virtual,omitempty"` // the virtual thread that holds it; without OwnerTID it is not mounted
}

// Virtual is a virtual thread.
type Virtual struct {
	ID   uint64 `json:"id"`
	Name string `json:"name,omitempty"`
}

// Frame is one function on a stack.
type Frame struct {
	Function string `json:"function"`
	Raw      string `json:"raw,omitempty"` // before generated parts were left out
	Module   string `json:"module,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int32  `json:"line,omitempty"`
	BCI      *int32 `json:"bci,omitempty"`
	Kind     string `json:"kind"`              // kernel, native, interpreted, C1, C2, inlined, stub and so on
	Guessed  bool   `json:"guessed,omitempty"` // it may not be on the stack
}
