package capture

import (
	"context"
	"errors"
	"time"

	"github.com/candid-profiler/candid/internal/target"
)

// Options is what an engine is asked for.
type Options struct {
	PIDs     []int         // thread groups to sample; empty with All
	All      bool          // the whole machine
	Children bool          // also processes that the targets start
	Period   time.Duration // of CPU time between samples, already kept off lock-step rates
	Events   []Event       // none: CPUTime
	// MinSleep is from how long on every sleep is a sample of OffCPU. Shorter ones
	// are sampled in proportion: one for each time that they sum up to it. 0 is
	// DefaultMinSleep.
	MinSleep time.Duration
	MaxStack int // bytes of stack copied at most; 0 is the engine's own limit
	// Tell is how long a sleep that goes on may be kept back at most. 0: until it
	// ends, or the recording does.
	Tell time.Duration
	// TellMost is of how many sleeps that go on may be told in a second; of more, each is
	// kept back for longer. 0: of any number.
	TellMost int
	// Ready, if it is set, is called once by Run, as soon as all that the targets do is
	// sampled: a target that waits for it can be let go. If it fails, Run does.
	Ready func() error
}

// Begun calls Ready.
func (o Options) Begun() error {
	if o.Ready == nil {
		return nil
	}
	return o.Ready()
}

// TellEvery is how long each of so many sleeps that go on is kept back.
func (o Options) TellEvery(sleeps int) time.Duration {
	if o.TellMost <= 0 {
		return o.Tell
	}
	return max(o.Tell, time.Duration(sleeps)*time.Second/time.Duration(o.TellMost))
}

// LeastSleep is MinSleep, or what it stands for.
func (o Options) LeastSleep() time.Duration {
	if o.MinSleep > 0 {
		return o.MinSleep
	}
	return DefaultMinSleep
}

// IdleBatch is how often a batch ends while the targets do nothing, so that what a Sink
// does from time to time is done.
const IdleBatch = 500 * time.Millisecond

// DefaultMinSleep is what a MinSleep of 0 stands for.
const DefaultMinSleep = time.Millisecond

// ProcessEvent is something other than a sample that happened to a target, in the
// order in which the engine saw it.
type ProcessEvent struct {
	Kind     NoticeKind
	Time     uint64 // ns, CLOCK_MONOTONIC
	PID, TID uint32
	Parent   uint32 // of a Fork: the parent's pid
	Comm     string // of an Exec or a Comm

	// Last says of an Exit that the whole process has ended. Not every engine knows.
	Last bool
	// Outcome says how the process ended, with Last. Not every engine knows.
	Outcome target.Outcome
	// Mapping is of an Mmap. It is empty where the engine only knows that something
	// was mapped; with PID 0 as well, mappings of any process went by unseen.
	Mapping target.Mapping
}

// NoticeKind is the kind of a Notice.
type NoticeKind uint8

// The kinds of Notice.
const (
	Exec NoticeKind = iota + 1 // the process became another program
	Fork                       // a new thread (PID == Parent) or process
	Exit                       // a thread ended
	Comm                       // a thread was renamed
	Mmap                       // an executable mapping was made
)

// Sink takes what an engine finds, called from one goroutine.
type Sink interface {
	// Sample takes one Snapshot; it may not keep it or its slices.
	Sample(*Snapshot)
	// Notice takes one ProcessEvent.
	Notice(ProcessEvent)
	// BatchEnd says that all that was waiting has been handed over. What was
	// read from a target's memory may be trusted from one BatchEnd to the next.
	// It is called about every IdleBatch even if nothing was.
	BatchEnd()
}

// Stats is what an engine did.
type Stats struct {
	Samples   uint64 // handed to the Sink
	Lost      uint64 // taken but not delivered: a ring was full
	Throttled uint64 // periods in which the kernel held the event back
	Bytes     uint64 // of stack copied
	Ended     uint64 // when sampling ended, ns of CLOCK_MONOTONIC; 0 where that is when Run did
}

// Loss is a stretch of time in which samples were lost.
type Loss struct {
	From, To uint64 // ns, CLOCK_MONOTONIC
	Samples  uint64
}

// AddLoss adds a loss to those before it. Ones that lie within a second of each other
// become one, and of too many the last one goes on.
func AddLoss(to []Loss, l Loss) []Loss {
	const (
		apart = 1e9
		most  = 64
	)
	if n := len(to); n > 0 && (l.From < to[n-1].To+apart || n >= most) {
		to[n-1].To = max(l.To, to[n-1].To)
		to[n-1].Samples += l.Samples
		return to
	}
	return append(to, l)
}

// BatchScheduler is a Sink that cannot always wait as long as an engine would let
// samples lie, or need not have them as soon.
type BatchScheduler interface {
	// NextBatch is how soon after a batch the next one is wanted; 0 leaves it to the
	// engine. It is asked after each batch. More than the engine's own time is a
	// permission: an engine takes as much of it as its buffers have room for.
	NextBatch() time.Duration
}

// Prompter is a Sink that wants some of what happens to be handed over at once, and can
// wait for the rest, however often that comes.
type Prompter interface {
	// Prompt is told of each Fork, Exec, Mmap and Exit, in order, when an engine that reads
	// beside the Sink has read it; Notice is told of it later. It reports whether the Sink
	// wants to have all until then now. It is called from a goroutine of the engine's.
	Prompt(n *ProcessEvent) (now bool)
}

// Slowed says that an engine samples slower than it was asked to from a time on, because
// the samples came faster than they were taken, or faster again.
type Slowed struct {
	Time  uint64 // ns, CLOCK_MONOTONIC
	Times int    // how many times slower than asked for; 1: as asked for
	First bool   // it begins so, to see whether more can be walked
}

// Pacer is a Sink that wants to know how fast is sampled.
type Pacer interface {
	// Slowed is called between batches.
	Slowed(Slowed)
}

// SleepSink is a Sink that remembers where threads sleep, so that a sleep that goes
// on need not be copied and walked again.
type SleepSink interface {
	// Again takes one more sample of a sleep that Sample was given with the same
	// TID and Sleep. Only these, Time, Weight, Event and State are set. It was not
	// taken if the Sink does not know that sleep any more. If it wants the stack
	// again, it gets it with the next sample of the sleep. Of a thread that runs it is
	// more time of its last sample.
	Again(*Snapshot) (taken, want bool)
}

// Engine is one way to stop threads and copy their stacks. Open has taken every
// resource; Run samples until ctx ends or no target is left.
type Engine interface {
	// Name is the engine's name as --engine takes it.
	Name() string
	// Describe is one line for the user: what is used and why.
	Describe() string
	// Run samples and blocks. It returns nil when ctx ended or all targets did.
	Run(ctx context.Context, sink Sink) error
	// AddPID makes a further process a target.
	AddPID(pid int) error
	Stats() Stats
	Close() error
}

// GoHinter is an Engine that does less for a sample where it knows what a process has
// not.
type GoHinter interface {
	// RunsGo tells whether a target runs Go code, until it runs another program; if it
	// is not told, it may. Without Go no second stack is looked for.
	RunsGo(pid int, does bool) error
}

// WakeupFilter is an Engine that the kernel wakes when programs begin and end, and that can be
// spared that for those whose code is all in files.
type WakeupFilter interface {
	// Plain tells that a program's file is of these, or not any more.
	Plain(dev, inode uint64, is bool) error
}

// Losing is an Engine that knows when samples were lost.
type Losing interface {
	// Losses are those so far, by time.
	Losses() []Loss
}

// Follower is an Engine that can copy with a sample what a stack goes on in.
type Follower interface {
	// Follow says how that is found in a process, until it runs another program; nil
	// says that nothing is to be looked for. It is called from the Sink, or before Run,
	// for the program that the last notices told of.
	Follow(pid int, how *Follow) error
}

// CPUAccounting is an Engine that has the kernel's accounts of its targets' threads at hand.
type CPUAccounting interface {
	// CPUTimes is how long each thread of a target has run, ns by tid; nil if the engine
	// does not have all of them. It may be called before Run and after it.
	CPUTimes(pid int) map[int]uint64
}

// ErrUnsupported is wrapped by every error that says that this system lacks
// what an engine needs.
var ErrUnsupported = errors.New("not supported here")

// ErrNoEvent is wrapped by every error that says that this machine, or the
// target, has no such event: a counter, a tracepoint, a function. No other
// engine would find it.
var ErrNoEvent = errors.New("no such event here")

// ErrPermission is wrapped by every error that says that the system has what an
// engine needs, but does not permit it.
var ErrPermission = errors.New("not permitted")
