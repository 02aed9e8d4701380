package runtimes

import (
	"errors"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Runtime is a kind of runtime whose code candid steps over and names. Package supported
// has the table of them.
type Runtime struct {
	Kind Kind

	// Functions and Threads are what users call the functions and the threads of its
	// programs: "Java methods", "Java threads".
	Functions, Threads string
	// Programs are its programs, as the subject of a sentence: "Java processes".
	Programs string
	// Means says for doctor what is named of such a program.
	Means string

	// AtStart: it belongs to the program from its beginning, so it is looked for once. Other
	// runtimes may be loaded when the program has run for a while.
	AtStart bool
	// Launched: the program's own file does no more than load it, and has no Go code. Go
	// code of such a process is in libraries only.
	Launched bool

	// Finder makes what looks for it.
	Finder func() Finder
	// Launch changes the command of a program that is about to be launched so that it can
	// be recorded better, and says what it did; "" if nothing. nil: there is nothing to do.
	Launch func(argv []string) (with []string, said string)

	// Waits are functions of its programs in which a thread waits, and how. Locks are the
	// beginnings of names of the runtime's own functions in which a thread waits to enter a lock.
	Waits map[string]profile.State
	Locks []string
}

// Finder looks for one kind of runtime in many processes, and remembers what it has seen of
// files. It belongs to one goroutine.
type Finder interface {
	// Open finds the runtime in a process, which stays the caller's and must outlive the
	// Instance. code is the process's native code; where it is nil, runtimes that need it
	// are not found. The error wraps ErrAbsent if the runtime is not there and ErrNotReady
	// if it is still starting.
	Open(t *target.Process, code *native.Stepper) (Instance, error)
	// Without reports whether it is known that the runtime does not lie behind a mapping.
	// It looks at nothing but the mapping.
	Without(m target.Mapping) bool
}

// Errors of a Finder.
var (
	ErrAbsent   = errors.New("no such runtime")
	ErrNotReady = errors.New("the runtime is still starting")
)

// Mark gives err the meaning of one of this package's errors and leaves its text alone.
func Mark(err, meaning error) error { return &marked{err, meaning} }

type marked struct{ err, meaning error }

func (e *marked) Error() string   { return e.err.Error() }
func (e *marked) Unwrap() []error { return []error{e.err, e.meaning} }

// Instance is the runtime of one process. What else it may be able to do is an interface
// each, below: Ability finds them. It belongs to one goroutine.
type Instance interface {
	// Title is its name and version as recordings have them, "hotspot 17.0.15"; "" if they
	// do not mention it.
	Title() string
	// Stepper steps over the code that it generates. It is asked before the native code's.
	Stepper() walk.Stepper
	// Resolver names the Stepper's frames; native names those of native code.
	Resolver(native symbol.Resolver) symbol.Resolver
	// ByRef reports whether frames of the Stepper with the same Ref are the same frame
	// whatever their PC, except for stubs.
	ByRef() bool
	// BeginBatch checks or forgets what may have changed since the last batch of samples.
	BeginBatch()
	// Notes says what cannot be done with it and why, one sentence each.
	Notes() []string
}

// Ability gives the first of some instances that has an ability, as that.
func Ability[A any](of []Instance) (able A, ok bool) {
	for _, i := range of {
		if able, ok = i.(A); ok {
			return able, true
		}
	}
	return able, false
}

// Follower is an Instance whose threads have stacks that go on elsewhere.
type Follower interface {
	// Follow describes to an engine where stacks go on; nil as long as that is not known,
	// or if they do not. It may be asked once a batch.
	Follow() *capture.Follow
	// ThreadPointer is the address of a thread's own storage, as capture.OpThread of a
	// Follow gives it; false if it is not known.
	ThreadPointer(tid uint32) (uint64, bool)
}

// Clocked is an Instance that compares times with those of samples.
type Clocked interface {
	// SetClock gives the clock of walk.Cursor.Time, in ns.
	SetClock(now func() uint64)
}

// Learner is an Instance that generates code while the program runs.
type Learner interface {
	// Learned is how many pieces of code have been read so far.
	Learned() int
}

// Adviser is an Instance that may be recorded better if its program is launched otherwise.
type Adviser interface {
	// Advice says what is amiss and what to do, after "process 17 runs"; "" for nothing.
	Advice() string
}

// ThreadNamer is an Instance that knows its threads by name.
type ThreadNamer interface {
	// AskThreads gives the names of threads by tid. whole reports whether they are all
	// threads of the runtime: while it begins or ends they may not be, and then nothing can
	// be said of threads that are not among them.
	AskThreads() (names map[int]string, whole bool)
	// Passing reports whether a thread gets a name when what it was there for is over, so
	// that the name before it is the better one.
	Passing(name string) bool
	// ThreadKind says what a thread is for: ThreadUnknown, ThreadNative or what
	// profile.Thread.Kind has else. name is the runtime's for it, "" if that is not known,
	// comm the kernel's, and whole is of AskThreads while the thread was there.
	ThreadKind(tid uint32, name, comm string, whole bool) string
	// RunnerKind is the kind of a thread that is known only by having run managed code.
	RunnerKind(comm string) string
}

// Kinds of threads that mean the same for all runtimes.
const (
	ThreadUnknown = ""       // the runtime could not be asked while the thread was there
	ThreadNative  = "native" // not the runtime's, as far as can be told
)

// LockWaiter is an Instance that knows what its threads wait for.
type LockWaiter interface {
	// WaitsForLock reports whether a thread waits to enter a lock; ok is false where it is not
	// the runtime's thread or cannot be told. The answer is true of any time from when the thread
	// fell asleep for as long as it has not run.
	WaitsForLock(tid uint32) (waits, ok bool)
}

// Observed is an Instance that tells of itself beside the samples.
type Observed interface {
	// Observe looks at the runtime: at all of it, once a second, or only at what would be
	// over by then.
	Observe(all bool, to Observations)
}

// Observations takes what an Observed tells of one process.
type Observations interface {
	PID() int
	// Seen adds an observation of now.
	Seen(kind uint16, values ...profile.Value)
	// Observe adds an observation with a time of its own; its Process is filled in.
	Observe(o profile.Observation)
	// Note keeps a line about what could not be had.
	Note(line string)
	// Hurry says that more of the same may come soon.
	Hurry()
	// Clock is the monotonic clock, and Start when sampling began by it, ns.
	Clock() uint64
	Start() uint64
}

// Configured is an Instance with settings that doctor explains.
type Configured interface {
	// Release is the runtime's version in its own words.
	Release() string
	// GC names the collector, "" if it is none that is known.
	GC() string
	// Flag gives a setting as text; false if there is no such setting.
	Flag(name string) (value string, ok bool)
	// Notes are those of the Instance.
	Notes() []string
}

// ThreadDumper is an Instance that knows its threads' states and locks.
type ThreadDumper interface {
	// DumpThreads reads the list of threads, and who holds which lock.
	DumpThreads() ThreadDump
	// Pause is the pause of all threads that goes on or is about to begin, nil if there is
	// none. d is a dump of this moment. The error says why pauses are not seen.
	Pause(d ThreadDump) (*Pause, error)
}

// ThreadDump is a runtime's threads at one moment. What it says of a thread that waits
// stays true for as long as it waits.
type ThreadDump interface {
	// Kind says what a thread is for, in the words of profile.Thread.Kind; comm is the
	// kernel's name for it.
	Kind(tid uint32, comm string) string
	// Name is the runtime's name for a thread; false if it is not the runtime's.
	Name(tid uint32) (string, bool)
	// Thread reads what a thread does now; false if it is not the runtime's.
	Thread(tid uint32) (ThreadState, bool)
	// Holds are the locks that a thread holds, as far as the runtime keeps account of them.
	Holds(tid uint32) []Object
	// ReadLocks reads anew who holds what, for all that Thread and Holds say from then on.
	ReadLocks()
	// Hides says which threads are not among these and how to see them, given the pid
	// by which the process knows itself; "" if there are none.
	Hides(pid int) string
}

// ThreadState is what a runtime knows of one of its threads.
type ThreadState struct {
	Kind     string // as ThreadDump.Kind
	ID       int64  // the runtime's number for it
	Daemon   bool
	Priority int
	State    string // in the language's words: StateRunnable, "WAITING (parking)"; "" is unknown
	VMState  string // where the runtime takes it to be: VMBlocked, "in native code"; "" is unknown

	Wait    Wait
	Virtual Virtual // that it carries; ID 0: none

	Compiling string // the method that a compiler thread is at, "" for none
	Tier      int    // that it is compiled for
}

const (
	// StateRunnable is the State of a thread that waits for nothing.
	StateRunnable = "RUNNABLE"
	// VMBlocked is the VMState of a thread that the runtime itself holds up.
	VMBlocked = "blocked in the VM"
)

// WaitKind says how a thread waits for an object.
type WaitKind uint8

// The kinds.
const (
	WaitsForNothing WaitKind = iota
	WaitsToLock              // the object's lock, which another thread holds
	WaitsOn                  // to be notified
	WaitsParked              // until it is unparked
)

// Wait is what a thread waits for.
type Wait struct {
	Kind    WaitKind
	Object  Object
	Owner   uint32  // the thread that holds it; 0: none, or it cannot be told
	Virtual Virtual // that holds it, Owner carries it; without Owner it is not mounted
}

// Object is an object of the runtime's heap. The collector may move it at any time.
type Object struct {
	Addr  uint64
	Class string
}

// Virtual is a thread that the runtime schedules itself; ID 0: none.
type Virtual struct {
	ID   uint64
	Name string
}

// Pause is a time in which a runtime stops all of its threads.
type Pause struct {
	State     string // "synchronizing", "synchronized"
	Operation string // what it is for, in the runtime's words; "" if not known
	// Since is how long ago it began by the monotonic clock, of which now is in ns; 0: not known.
	Since    func(now int64) time.Duration
	WaitsFor []uint32 // threads that are not at rest yet
}
