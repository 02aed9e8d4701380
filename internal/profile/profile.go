// Package profile is what a recording holds in memory: samples with deduplicated stacks, threads,
// and what was lost. It does not depend on files, screens, or how the samples were taken.
package profile

import (
	"time"

	"github.com/candid-profiler/candid/internal/walk"
)

// Profile is a recording.
type Profile struct {
	Meta      Meta
	Events    []Event
	Processes []Process
	Threads   []Thread
	Funcs     []Func
	Frames    []Frame // logical frames, deduplicated
	Nodes     []Node  // a trie of stacks, outermost frame first; Nodes[0] is the root
	Samples   []Sample
	Losses    Losses
	// Syscalls are the names of system calls that samples are in, one for each combination of a system
	// call and labels: names repeat, and are "" for samples with labels only. The first one is none,
	// without labels; nil means the same as only that.
	Syscalls []string
	// Labels are, by index into Syscalls, the labels of samples with that index. It is shorter than
	// Syscalls if the last ones have no labels.
	Labels [][]Label
	// Observations are what was seen beside the samples.
	Observations []Observation

	// Further samples, which are not in Samples: see Keep.
	packed []*sampleLog
	room   *room // of packed
	sums   sums
	timed  bool   // there are times in packed, or sums had times
	latest uint64 // the latest of these times
}

// Meta describes how and when the recording was made.
type Meta struct {
	Start    time.Time
	Duration time.Duration
	Host     string
	Engine   string   // name of the engine
	Describe string   // one line on how it sampled
	Command  string   // what was profiled, for people
	Version  string   // of candid
	Notes    []string // what was not available, and why
	Cost     Cost
	// Unfinished means that a file that candid writes while it records was not written to its end,
	// or not yet.
	Unfinished bool
}

// Cost is what a recording cost while it was made. 0 means not known.
type Cost struct {
	// Copying is how long copying stacks took of the targets' time, without the surrounding timer
	// interrupt.
	Copying time.Duration
	// TargetCPU is the CPU time that the targets used, including the copying.
	TargetCPU time.Duration
	OwnCPU    time.Duration // candid's own CPU time, including attaching
	Memory    uint64        // bytes: candid's own peak memory
	// FirstWalked is how long after the start of attaching the first sample was walked.
	FirstWalked time.Duration
	// Samples is how many samples were taken at that cost, and Recorded in which time, if this is
	// only a part of that recording; else 0.
	Samples  uint64
	Recorded time.Duration
}

// Of records that the cost is of a recording of so many samples, of which only a part is left. If
// the cost is not known, or is already that of a larger recording, nothing changes.
func (c *Cost) Of(samples uint64, recorded time.Duration) {
	if *c != (Cost{}) && c.Samples == 0 {
		c.Samples, c.Recorded = samples, recorded
	}
}

// Event describes what a sample's weight counts.
type Event struct {
	Name   string // as a user or another profiler calls it: "cpu", "cache-misses:u"
	Kind   EventKind
	Unit   string // "nanoseconds", "count", "bytes"
	Period uint64 // nominal weight of one sample
	// Column is which of the values of a sample it is in the file that was read, from 1 on; 0 if
	// samples have one value there. Each value of a sample is a Sample of its own here.
	Column uint16
}

// NamedEvent returns an event of a file that does not say its kind.
func NamedEvent(name, unit string, period uint64) Event {
	return Event{Name: name, Kind: EventKindOf(name), Unit: unit, Period: period}
}

// UnnamedSamples returns the event of a file that does not say what its samples are of.
func UnnamedSamples() Event {
	return Event{Name: "samples", Kind: EventSamples, Unit: "count", Period: 1}
}

// Process is one profiled process.
type Process struct {
	PID     int
	Command string
	Runtime string // "hotspot 17.0.15", "" for native programs
	// Service is what the process belongs to for those who run it, and Container the ID of the
	// container that it runs in, as record.Options.Service named them; "" if nobody did.
	Service, Container string
}

// Thread is one profiled thread.
type Thread struct {
	PID, TID int
	Name     string // the runtime's name for it, otherwise the operating system's
	OSName   string
	// Kind is what the thread is for, one of ThreadKinds; "" if not known.
	Kind string
	// KernelCPU is the CPU time that the kernel accounted to the thread while it was recorded, in
	// ns; 0 if not known.
	KernelCPU uint64
}

// Func is a function, method or stub.
type Func struct {
	Name      string // for people
	Raw       string // as in the symbol table; "" if the same
	Signature string
	Module    string
	File      string
	Start     int32 // source line on which it is declared; 0: unknown
	NoName    bool  // Name is only module+offset
}

// Frame is a position in a function.
type Frame struct {
	Func  uint32 // index into Funcs
	Line  int32  // 0: unknown
	BCI   int32  // -1: none
	Kind  walk.Kind
	Prov  walk.Provenance
	Flags walk.FrameFlags
	Addr  uint64
}

// Node is a frame below its caller. Its parent has a lower index.
type Node struct {
	Parent uint32 // index into Nodes
	Frame  uint32 // index into Frames; meaningless for the root
}

// Sample is one sample.
type Sample struct {
	Time   uint64 // ns since Meta.Start; for a wait (Event.Spans) when it ended
	Weight uint64
	Node   uint32 // innermost frame of its stack
	Thread uint32 // index into Threads
	Event  uint16 // index into Events
	// Syscall is the index of the system call that the thread is in, and of the sample's labels, into
	// Syscalls and Labels; 0: none.
	Syscall uint16
	State   State
	End     walk.End // how its stack ends on the outer side
	Flags   SampleFlags
}

// SampleFlags describe how certain a sample's stack is.
type SampleFlags uint8

const (
	// Stitched: part of the stack was read after the sample was taken.
	Stitched SampleFlags = 1 << iota
	// Guessed: at least one frame is heuristic, or the end was found by a guess.
	Guessed
	// Continued: the sample is a further piece of the wait that the thread's last sample of this
	// event reported. A Builder joins all pieces to one sample.
	Continued
	// Unnamed: for at least one frame of managed code the method is not known.
	Unnamed
)

// State is what the thread was doing.
type State uint8

// The states.
const (
	StateUnknown  State = iota
	StateRunning        // on a CPU
	StateRunnable       // ready to run, waiting for a CPU
	StateSleeping       // in a system call that waits
	StateBlocked        // at a monitor that another thread holds
	StateParked         // by LockSupport.park: most locks and pools of java.util.concurrent
	StateWaiting        // in Object.wait
	StateDisk           // in an uninterruptible sleep: mostly for a disk or a page
)

// Losses counts samples that are not in Samples.
type Losses struct {
	Lost      uint64 // samples that a full buffer dropped
	Throttled uint64
}

// RootNode is the index of the trie's root: the empty stack.
const RootNode = 0
