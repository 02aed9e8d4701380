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

// Runtime is a kind of runtime whose code candid steps over and names. Package supported has the
// table of them.
type Runtime struct {
	Kind Kind

	// Functions and Threads are what users call the functions and the threads of its
	// programs: "Java methods", "Java threads".
	Functions, Threads string
	// Programs are its programs, as the subject of a sentence: "Java processes".
	Programs string
	// Means is doctor's description of what is named in such a program.
	Means string

	// AtStart says that it belongs to the program from its beginning, so it is looked for once.
	// Other runtimes may be loaded when the program has run for a while.
	AtStart bool
	// Launched says that the program's own file is only a launcher, and has no Go code. Go code in
	// such a process is in libraries only.
	Launched bool
	// Loads says that it loads images, which may hold another runtime, by making memory executable that
	// was mapped otherwise: engines report nothing of that.
	Loads bool

	// Finder returns a new Finder for it.
	Finder func() Finder
	// Launch changes the command of a program that is about to be launched so that it can be
	// recorded better, and returns what it changed; "" if nothing. nil: nothing is ever changed.
	Launch func(argv []string) (with []string, said string)
	// InlineEnv are settings, NAME=VALUE, of the environment of a program that is about to be
	// launched that make the runtime record which methods it inlines where.
	InlineEnv []string

	// Waits are functions of its programs in which a thread waits, and how. Locks are prefixes of
	// functions, the runtime's own or managed ones, in which a thread waits to enter a lock.
	Waits map[string]profile.State
	Locks []string
}

// Finder looks for one kind of runtime in many processes, and remembers which files it has
// examined. It is used from one goroutine.
type Finder interface {
	// Open finds the runtime in a process, which stays the caller's and must outlive the Instance.
	// code is the process's native code; if it is nil, runtimes that need it are not found. The
	// error wraps ErrAbsent if the runtime is not there and ErrNotReady if it is still starting.
	Open(t *target.Process, code *native.Stepper) (Instance, error)
	// Without reports whether the file behind a mapping is known not to contain the runtime. It
	// looks only at the mapping.
	Without(m target.Mapping) bool
}

// Errors of a Finder.
var (
	ErrAbsent   = errors.New("no such runtime")
	ErrNotReady = errors.New("the runtime is still starting")
)

// Mark returns err with its text, so that it also wraps meaning, one of this package's errors.
func Mark(err, meaning error) error { return &marked{err, meaning} }

type marked struct{ err, meaning error }

func (e *marked) Error() string   { return e.err.Error() }
func (e *marked) Unwrap() []error { return []error{e.err, e.meaning} }

// Instance is the runtime of one process. Its optional abilities are the interfaces below: Ability
// finds them. It is used from one goroutine.
type Instance interface {
	// Title returns its name and version for recordings, "hotspot 17.0.15"; "" if recordings do not
	// mention it.
	Title() string
	// Stepper returns the stepper for the code that it generates. It is asked before the native
	// code's.
	Stepper() walk.Stepper
	// Resolver returns the resolver for the Stepper's frames; native is the one for native code.
	Resolver(native symbol.Resolver) symbol.Resolver
	// ByRef reports whether frames of the Stepper with the same Ref are the same frame
	// whatever their PC, except for stubs.
	ByRef() bool
	// BeginBatch checks or forgets what may have changed since the last batch of samples.
	BeginBatch()
	// Notes returns what does not work with it and why, one sentence each.
	Notes() []string
}

// Ability returns the first of some instances that has an ability.
func Ability[A any](of []Instance) (able A, ok bool) {
	for _, i := range of {
		if able, ok = i.(A); ok {
			return able, true
		}
	}
	return able, false
}

// Follower is an Instance whose threads have stacks that continue elsewhere.
type Follower interface {
	// Follow describes to an engine where stacks continue; nil as long as that is not known, or if
	// they do not. It may be called once a batch.
	Follow() *capture.Follow
	// ThreadPointer returns the address of a thread's own storage, as capture.OpThread of a Follow
	// does; false if it is not known.
	ThreadPointer(tid uint32) (uint64, bool)
}

// FollowerOf returns the Follower among some instances; false if there is none. Of several, it is
// the first that describes something.
func FollowerOf(of []Instance) (Follower, bool) {
	var all followers
	for _, i := range of {
		if f, ok := i.(Follower); ok {
			all = append(all, f)
		}
	}
	if len(all) == 1 {
		return all[0], true
	}
	return all, len(all) > 0
}

// followers are several Followers.
type followers []Follower

// Follow implements Follower.
func (f followers) Follow() *capture.Follow {
	for _, one := range f {
		if how := one.Follow(); how != nil {
			return how
		}
	}
	return nil
}

// ThreadPointer implements Follower.
func (f followers) ThreadPointer(tid uint32) (uint64, bool) {
	for _, one := range f {
		if base, ok := one.ThreadPointer(tid); ok {
			return base, true
		}
	}
	return 0, false
}

// Clocked is an Instance that compares times with the times of samples.
type Clocked interface {
	// SetClock sets the clock of walk.Cursor.Time, in ns.
	SetClock(now func() uint64)
}

// Learner is an Instance that generates code while the program runs.
type Learner interface {
	// Learned returns how many pieces of code have been read so far.
	Learned() int
}

// Adviser is an Instance that may be recorded better if its program is launched differently.
type Adviser interface {
	// Advice returns what is wrong and what to do, as a continuation of "process 17 runs"; "" for
	// nothing.
	Advice() string
}

// ThreadNamer is an Instance that has names for its threads.
type ThreadNamer interface {
	// AskThreads returns the names of threads by tid. whole reports whether they are all threads of
	// the runtime: while it begins or ends they may not be, and then nothing is known about other
	// threads.
	AskThreads() (names map[int]string, whole bool)
	// Passing reports whether a thread gets this name when its actual work is over, so that the
	// name before it is the better one.
	Passing(name string) bool
	// ThreadKind returns what a thread is for: ThreadUnknown, ThreadNative or another value of
	// profile.Thread.Kind. name is the runtime's name for it, "" if that is not known, comm the
	// kernel's, and whole is the result of AskThreads while the thread was there.
	ThreadKind(tid uint32, name, comm string, whole bool) string
	// RunnerKind returns the kind of a thread that is known only by having run managed code.
	RunnerKind(comm string) string
}

// Kinds of threads that are common to all runtimes.
const (
	ThreadUnknown = ""       // the runtime could not be asked while the thread was there
	ThreadNative  = "native" // not the runtime's, as far as can be told
)

// LockWaiter is an Instance that knows what its threads wait for.
type LockWaiter interface {
	// WaitsForLock reports whether a thread waits to enter a lock; ok is false if it is not the
	// runtime's thread or that cannot be told. The answer holds from when the thread fell asleep
	// for as long as it has not run.
	WaitsForLock(tid uint32) (waits, ok bool)
}

// Observed is an Instance that reports observations of itself besides the samples.
type Observed interface {
	// Observe examines the runtime: all of it, once a second, or only what would be over by then.
	Observe(all bool, to Observations)
	// Redescribe makes the next Observe report again what it reported once, such as the settings:
	// what comes from then on is another recording.
	Redescribe()
}

// Observations receives what an Observed reports of one process.
type Observations interface {
	PID() int
	// Seen adds an observation with the current time.
	Seen(kind uint16, values ...profile.Value)
	// Observe adds an observation with its own time; its Process is filled in.
	Observe(o profile.Observation)
	// Note records a line about what could not be observed.
	Note(line string)
	// Hurry says that more of the same kind may come soon.
	Hurry()
	// Clock returns the monotonic clock, and Start its value when sampling began, in ns.
	Clock() uint64
	Start() uint64
}

// Configured is an Instance with settings that doctor explains.
type Configured interface {
	// Release returns the runtime's version in its own words.
	Release() string
	// GC returns the name of the collector, "" if it is not a known one.
	GC() string
	// Flag returns a setting as text; false if there is no such setting.
	Flag(name string) (value string, ok bool)
	// Notes are those of the Instance.
	Notes() []string
}

// ThreadDumper is an Instance that knows its threads' states and locks.
type ThreadDumper interface {
	// DumpThreads reads the list of threads, and who holds which lock.
	DumpThreads() ThreadDump
	// Pause returns the pause of all threads that is in progress or about to begin, nil if there is
	// none. d is a current dump. The error says why pauses are not seen.
	Pause(d ThreadDump) (*Pause, error)
}

// ThreadDump is a runtime's threads at one moment. Its information about a waiting thread stays
// true for as long as the thread waits.
type ThreadDump interface {
	// Kind returns what a thread is for, in the words of profile.Thread.Kind; comm is the kernel's
	// name for it.
	Kind(tid uint32, comm string) string
	// Name returns the runtime's name for a thread; false if it is not the runtime's.
	Name(tid uint32) (string, bool)
	// Thread reads what a thread is doing now; false if it is not the runtime's.
	Thread(tid uint32) (ThreadState, bool)
	// Holds returns the locks that a thread holds, as far as the runtime records them.
	Holds(tid uint32) []Object
	// ReadLocks reads again who holds what, for all later calls of Thread and Holds.
	ReadLocks()
	// Hides returns which threads are not in the dump and how to see them, given the pid of the
	// process in its own namespace; "" if there are none.
	Hides(pid int) string
}

// AsyncReader is an Instance that finds asynchronous methods that have begun and wait.
type AsyncReader interface {
	// PendingAsync reads the heap for that, within limits. The error says why it cannot be read.
	PendingAsync(AsyncLimits) (*Async, error)
}

// AsyncLimits bound how much an AsyncReader reads.
type AsyncLimits struct {
	Time  time.Duration
	Bytes uint64 // of the heap
	// Stopped reports whether to give up before; nil: never.
	Stopped func() bool
}

// Async are asynchronous methods that wait, and what they wait for.
type Async struct {
	Nodes   []AsyncNode
	Pending int           // how many of Nodes are methods
	Missing []string      // why there may be more; nil: these are all
	Heap    uint64        // bytes of the heap in which they may be
	Read    uint64        // bytes of it that were read
	Took    time.Duration // for all of it
}

// AsyncNode is a method that waits, or an object that a method waits for.
type AsyncNode struct {
	Name   string // of the method, or of the object's type
	Raw    string // of the object that a method is while it waits; "" for other objects
	Detail string // what is known of an object besides
	Method bool
	State  int32   // where the method waits: the number that the compiler has given to it
	Awaits []int32 // indices of what it waits for
	// Unknown says that what a method waits for is not known.
	Unknown bool
	Then    string // type of what is called afterwards, if that is none of the Nodes; "" for nothing
}

// StackReader is a ThreadDump that finds out from a thread's stack what the thread waits for.
type StackReader interface {
	// ReadStack is told the stack of a thread from its stack pointer up, and the frames on it. The thread
	// has to be asleep for what is found to be true.
	ReadStack(tid uint32, frames []walk.Frame, sp uint64, stack []byte)
}

// ThreadState is what a runtime knows about one of its threads.
type ThreadState struct {
	Language string // whose thread it is: "" is Java's, DotNet .NET's
	Kind     string // as ThreadDump.Kind; "" if that is to be asked
	ID       int64  // the runtime's number for it
	Daemon   bool
	Priority int
	State    string // in the language's words: StateRunnable, "WAITING (parking)"; "" is unknown
	VMState  string // where the runtime takes it to be: VMBlocked, "in native code"; "" is unknown

	Wait    Wait
	Virtual Virtual // the virtual thread that it carries; ID 0: none

	Compiling string // the method that a compiler thread is compiling, "" for none
	Tier      int    // tier that it is compiled for
}

const (
	// DotNet is the Language of .NET's threads.
	DotNet = "dotnet"
	// StateRunnable is the State of a thread that is not waiting.
	StateRunnable = "RUNNABLE"
	// VMBlocked is the VMState of a thread that the runtime itself blocks.
	VMBlocked = "blocked in the VM"
)

// WaitKind is how a thread waits for an object.
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
	Virtual Virtual // the virtual thread that holds it, carried by Owner; without Owner it is not mounted
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
	// Since returns how long ago it began; now is the monotonic clock in ns; 0: not known.
	Since    func(now int64) time.Duration
	WaitsFor []uint32 // threads that have not stopped yet
}
