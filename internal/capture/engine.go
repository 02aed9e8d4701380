package capture

import (
	"context"
	"errors"
	"time"

	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/vmread"
)

// Options is what an engine is asked to do.
type Options struct {
	PIDs     []int         // thread groups to sample; empty with All
	All      bool          // the whole machine
	Children bool          // also processes that the targets start
	Period   time.Duration // of CPU time between samples, already moved away from lockstep rates
	Events   []Event       // none: CPUTime
	// MinSleep is the duration from which on every sleep is a sample of OffCPU. Shorter sleeps are
	// sampled in proportion: one each time that they add up to it. 0 is DefaultMinSleep.
	MinSleep time.Duration
	MaxStack int // bytes of stack copied at most; 0 is the engine's own limit
	// Tell is how long a sleep that goes on may be held back at most. 0: until it ends, or the
	// recording does.
	Tell time.Duration
	// TellMost is how many sleeps that go on may be reported in a second; if there are more, each
	// is held back for longer. 0: any number.
	TellMost int
	// Started returns of how many processes a command that candid has started consisted so far, itself
	// included; nil, or false: that is not known.
	Started func() (n uint64, ok bool)
	// Reads is when reads of a target's memory that do not return are given up; nil: after a while.
	Reads *vmread.Ends
	// Sampling and Ready, if they are set, are called once by Run, in this order, as soon as everything
	// that the targets do is sampled. A target that waits for Ready is released by it; if it fails, Run
	// does.
	Sampling func()
	Ready    func() error
}

// Begun calls Sampling and Ready.
func (o Options) Begun() error {
	if o.Sampling != nil {
		o.Sampling()
	}
	if o.Ready == nil {
		return nil
	}
	return o.Ready()
}

// TellEvery returns how long each of that many sleeps that go on is held back.
func (o Options) TellEvery(sleeps int) time.Duration {
	if o.TellMost <= 0 {
		return o.Tell
	}
	return max(o.Tell, time.Duration(sleeps)*time.Second/time.Duration(o.TellMost))
}

// LeastSleep returns MinSleep, or DefaultMinSleep if that is 0.
func (o Options) LeastSleep() time.Duration {
	if o.MinSleep > 0 {
		return o.MinSleep
	}
	return DefaultMinSleep
}

// IdleBatch is how often a batch ends while the targets do nothing, so that a Sink can do its
// periodic work.
const IdleBatch = 500 * time.Millisecond

// DefaultMinSleep is the value for a MinSleep of 0.
const DefaultMinSleep = time.Millisecond

// ProcessEvent is something other than a sample that happened to a target. Events come in the order
// in which the engine saw them.
type ProcessEvent struct {
	Kind     ProcessEventKind
	Time     uint64 // ns, CLOCK_MONOTONIC
	PID, TID uint32
	Parent   uint32 // of a Fork: the parent's pid
	Comm     string // of an Exec or a Comm

	// Last says of an Exit that the whole process has ended. Not every engine knows that.
	Last bool
	// Outcome says how the process ended, with Last. Not every engine knows that.
	Outcome target.Outcome
	// Mapping belongs to an Mmap. It is empty if the engine only knows that something was mapped;
	// with PID 0 as well, mappings of any process may have been missed.
	Mapping target.Mapping
}

// ProcessEventKind is the kind of a ProcessEvent.
type ProcessEventKind uint8

// Kinds of ProcessEvent.
const (
	Exec ProcessEventKind = iota + 1 // the process executed another program
	Fork                             // a new thread (PID == Parent) or process
	Exit                             // a thread ended
	Comm                             // a thread was renamed
	Mmap                             // an executable mapping was made
)

// Sink receives what an engine finds. It is called from one goroutine.
type Sink interface {
	// Sample receives one Snapshot; it may not keep it or its slices.
	Sample(*Snapshot)
	// Notice receives one ProcessEvent.
	Notice(ProcessEvent)
	// BatchEnd says that everything that was waiting has been handed over. Data read from a
	// target's memory may be trusted from one BatchEnd to the next. It is called about every
	// IdleBatch even if there was nothing.
	BatchEnd()
}

// Stats is what an engine has done.
type Stats struct {
	Samples   uint64 // handed to the Sink
	Lost      uint64 // taken but not delivered: a ring was full
	Throttled uint64 // periods in which the kernel throttled the event
	Bytes     uint64 // of stack copied
	Ended     uint64 // when sampling ended, ns of CLOCK_MONOTONIC; 0 if that is when Run returned
}

// Loss is a stretch of time in which samples were lost.
type Loss struct {
	From, To uint64 // ns, CLOCK_MONOTONIC
	Samples  uint64
}

// AddLoss adds a loss to earlier ones. Losses within a second of each other become one, and if
// there are too many the last one is extended.
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

// BatchScheduler is a Sink that cannot always wait as long as an engine would let samples lie, or
// that need not have them that soon.
type BatchScheduler interface {
	// NextBatch returns how soon after a batch the next one is wanted; 0 leaves it to the engine.
	// It is called after each batch. A time longer than the engine's own is a permission: an engine
	// uses as much of it as its buffers have room for.
	NextBatch() time.Duration
}

// Prompter is a Sink that wants some events to be handed over at once, and can wait for the rest,
// however many they are.
type Prompter interface {
	// Prompt receives each Fork, Exec, Mmap and Exit, in order, when an engine that reads
	// concurrently with the Sink has read it; Notice receives it later. Prompt reports whether the
	// Sink wants everything up to it now. It is called from a goroutine of the engine's.
	Prompt(n *ProcessEvent) (now bool)
}

// Slowed says that from a time on an engine samples more slowly than requested, because the samples
// came faster than they were taken, or faster again.
type Slowed struct {
	Time  uint64 // ns, CLOCK_MONOTONIC
	Times int    // factor by which it is slower than requested; 1: as requested
	First bool   // sampling starts like this, to see whether more can be walked
	// Why says why, if it is not that candid gets too little of the CPUs to walk more.
	Why string
}

// Pacer is a Sink that wants to know the sampling rate.
type Pacer interface {
	// Slowed is called between batches.
	Slowed(Slowed)
}

// SleepSink is a Sink that remembers where threads sleep, so that a sleep that goes on need not be
// copied and walked again.
type SleepSink interface {
	// Again receives one more sample of a sleep that Sample received with the same TID and Sleep.
	// Only these, Time, Weight, Event and State are set. taken is false if the Sink no longer knows
	// that sleep. If the Sink wants the stack again, it gets it with the next sample of the sleep.
	// For a thread that runs it is more time for its last sample.
	Again(*Snapshot) (taken, want bool)
}

// Engine is one way to stop threads and copy their stacks. Open has acquired every resource; Run
// samples until ctx ends or no target is left.
type Engine interface {
	// Name returns the engine's name as --engine accepts it.
	Name() string
	// Describe returns one line for the user: what is used and why.
	Describe() string
	// Run samples and blocks. It returns nil when ctx or all targets have ended.
	Run(ctx context.Context, sink Sink) error
	// AddPID adds a process to the targets.
	AddPID(pid int) error
	Stats() Stats
	Close() error
}

// GoHinter is an Engine that does less for a sample if it knows what a process does not have.
type GoHinter interface {
	// RunsGo sets whether a target runs Go code, until it runs another program; if it is not
	// called, the target may. Without Go no second stack is looked for.
	RunsGo(pid int, does bool) error
}

// WakeupFilter is an Engine that the kernel wakes when programs begin and end, and that need not be
// woken for those whose code is all in files.
type WakeupFilter interface {
	// Plain sets whether a program's file is one of these.
	Plain(dev, inode uint64, is bool) error
}

// Throttler is an Engine that can change its rate while it samples.
type Throttler interface {
	// Throttle makes clocks tick that many times less often than requested; 1 ends that. A Pacer is
	// told, with the reason why. It may be called from any goroutine.
	Throttle(times int, why string)
}

// Losing is an Engine that knows when samples were lost.
type Losing interface {
	// Losses returns the losses so far, in time order.
	Losses() []Loss
}

// Follower is an Engine that can copy, with a sample, the memory in which a stack goes on.
type Follower interface {
	// Follow sets how that memory is found in a process, until it runs another program; nil means
	// that nothing is to be looked for. It is called from the Sink, or before Run, for the program
	// that the last notices reported.
	Follow(pid int, how *Follow) error
}

// CPUAccounting is an Engine that has the kernel's accounts of its targets' threads at hand.
type CPUAccounting interface {
	// CPUTimes returns how long each thread of a target has run, in ns by TID; nil if the engine
	// does not know all of them. It may be called before Run and after it.
	CPUTimes(pid int) map[int]uint64
}

// ErrUnsupported is wrapped by every error which says that this system lacks what an engine needs.
var ErrUnsupported = errors.New("not supported here")

// ErrNoEvent is wrapped by every error which says that this machine, or the target, has no such
// event: a counter, a tracepoint, a function. No other engine would find it.
var ErrNoEvent = errors.New("no such event here")

// ErrPermission is wrapped by every error which says that the system has what an engine needs, but
// does not permit it.
var ErrPermission = errors.New("not permitted")
