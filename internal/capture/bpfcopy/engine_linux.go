package bpfcopy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
)

const (
	// largestStack is the most bytes of a stack that the programs copy.
	largestStack = 512 << 10
	// unknownStack is the most bytes if the stack's top is not known.
	unknownStack = 64 << 10
)

// maxStackOf returns how many bytes of a stack are copied at most.
func maxStackOf(opts capture.Options) int {
	if opts.MaxStack <= 0 || opts.MaxStack > largestStack {
		return largestStack
	}
	return max(opts.MaxStack, 1024)
}

// Engine implements capture.Engine with BPF programs.
type Engine struct {
	opts   capture.Options
	progs  *programs
	events *events
	timers *perfevent.Timers // nil if nothing is sampled by a clock
	ticks  []int             // links of the program to the timers' events
	mmaps  *perfevent.Mmaps  // nil if it could not be opened
	ring   *ring
	waiter *perfevent.Waiter

	// reading guards the rings and the clocks' periods.
	reading sync.Mutex
	stopped bool // nothing is sampled any more
	kept    *backlog
	pace    pace
	patient atomic.Int64  // how long samples may wait in the ring, ns
	between time.Duration // how much lies between two samples on average, at least; 0: not known
	alarmed atomic.Bool   // the next sample wakes the reader and is walked at once

	prompter capture.Prompter // nil if the Sink does not implement it
	prompted bool             // it wants what was read now to be walked at once
	sampled  bool             // there has been a sample

	targets *perfevent.Targets
	snap    capture.Snapshot
	execed  map[uint32]bool // mmaps reported an Exec that the programs have not reported yet

	begun   map[uint32]uint64    // which program each target runs, by the programs' own number; 0: its first
	known   map[uint32]knowledge // of those programs
	follows [maxFollows]bool     // which slots of the map are in use

	running atomic.Bool
	reader  atomic.Pointer[reader] // nil: the walker reads the rings itself
	here    inPlace
	flow    flow
	strain  time.Time // when walking last took long, or had to happen soon
	walked  time.Time // when walking last began

	seen    asleep // threads that sleep at the end
	told    told
	started uint64    // CLOCK_MONOTONIC, ns, from when on time off the CPU counts
	batched time.Time // when a batch last ended
	telling time.Time // when sleeps that go on were last reported, or recording began
	toldAll bool      // so was each sleep that was going on when recording began
	asleep  int       // how many there were

	samples, bytes, malformed atomic.Uint64
	dropped                   atomic.Uint64 // records for which there was no room in kept
	ended                     atomic.Uint64 // when sampling ended, ns; 0: it goes on
}

// Users of an engine ask by interface whether it has more than capture.Engine.
var (
	_ capture.Engine       = (*Engine)(nil)
	_ capture.GoHinter     = (*Engine)(nil)
	_ capture.WakeupFilter = (*Engine)(nil)
	_ capture.Follower     = (*Engine)(nil)
	_ capture.Losing       = (*Engine)(nil)
)

// Open loads the programs and opens the events; nothing is sampled before Run.
func Open(opts capture.Options, variant Variant) (*Engine, error) {
	if opts.Period <= 0 {
		return nil, fmt.Errorf("sample every %v: the period must be above zero", opts.Period)
	}
	events, err := sortEvents(opts)
	if err != nil {
		return nil, err
	}
	cpus, err := perfevent.OnlineCPUs()
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: opts, events: events, targets: perfevent.NewTargets(opts.All), execed: map[uint32]bool{}, begun: map[uint32]uint64{}, known: map[uint32]knowledge{}, kept: newBacklog(maxHeld)}
	e.seen.stuck.End(opts.Reads)
	size := ringSize(opts, len(cpus))
	if e.progs, err = load(opts, events, variant, size); err != nil {
		return nil, err
	}
	if err := e.open(cpus, size); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Engine) open(cpus []int, size int) (err error) {
	if e.ring, err = mapRing(e.progs.coll.Maps["ring"].FD(), size); err != nil {
		return err
	}
	if e.waiter, err = perfevent.NewWaiter(); err != nil {
		return err
	}
	if err = e.waiter.Add(e.progs.coll.Maps["ring"].FD()); err != nil {
		return err
	}
	if len(e.events.ticks) > 0 {
		if err = e.openTimers(cpus); err != nil {
			return err
		}
		if e.progs.points == nil && e.progs.offCPU == nil {
			e.between = e.opts.Period / time.Duration(max(len(cpus), 1))
		}
	}
	if e.progs.points != nil {
		if err = e.progs.points.open(e.opts, e.events, e.progs.sample, e.progs.count, cpus); err != nil {
			return err
		}
	}
	// Without them new code is still found, only a little later.
	if e.mmaps, _ = perfevent.OpenMmaps(cpus); e.mmaps != nil {
		if err := e.mmaps.WakeBy(e.waiter); err != nil {
			return err
		}
	}
	for _, pid := range e.opts.PIDs {
		if err := e.AddPID(pid); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) openTimers(cpus []int) (err error) {
	if e.timers, err = perfevent.OpenTimers(perfevent.Attr{}, cpus, e.opts.Period); err != nil {
		return err
	}
	return e.timers.Each(func(cpu, fd int) error {
		l, err := attachEvent(e.progs.sample, fd, eventTick)
		if err != nil {
			return fmt.Errorf("put the BPF program on cpu %d's perf event: %w", cpu, err)
		}
		e.ticks = append(e.ticks, l)
		return nil
	})
}

// ringSize returns room for half a second of 16 KiB stacks from every CPU, and for at least several
// of the largest. For the whole machine, which may be so busy that the reader waits for a CPU, it
// returns twice that. All of it counts as candid's memory.
func ringSize(opts capture.Options, cpus int) int {
	want := 0.5 / opts.Period.Seconds() * float64(cpus) * 16384
	if opts.All {
		want *= 2
	}
	size := 8 << 20
	for size < 32<<20 && float64(size) < want {
		size *= 2
	}
	return size
}

// Name returns "bpf".
func (e *Engine) Name() string { return "bpf" }

// Describe returns what is used, for people.
func (e *Engine) Describe() string {
	s := "perf events + BPF stack copy (" + e.events.describe(e.opts) + ")"
	if len(e.events.ticks) > 0 {
		s += perfevent.RateNote(e.opts.Period)
	}
	if e.progs.why != "" {
		s += ", " + e.progs.variant.String() + ": " + e.progs.why
	}
	return s
}

// Variant returns how the stack's bytes are copied.
func (e *Engine) Variant() Variant { return e.progs.variant }

// Run samples until ctx ends or no target is left.
func (e *Engine) Run(ctx context.Context, sink capture.Sink) error {
	if err := e.progs.coll.Variables["eager"].Set(uint32(1)); err != nil {
		return fmt.Errorf("ask for the first sample: %w", err)
	}
	if e.timers != nil {
		if e.opts.All {
			e.timers.Slow(e.pace.begin(perfevent.Now(), e.opts.Period))
		}
		if err := e.timers.Start(); err != nil {
			return err
		}
	}
	if err := e.progs.offCPU.start(); err != nil {
		return err
	}
	if err := e.progs.points.start(); err != nil {
		return err
	}
	e.running.Store(true)
	e.bePatient(sink)
	e.pace.looked = perfevent.Now()
	e.pace.asked = e.pace.looked
	e.prompter, _ = sink.(capture.Prompter)
	unhook := e.waiter.WakeOn(ctx)
	e.here.guard = time.AfterFunc(time.Hour, func() { e.relieve(ctx) })
	e.here.guard.Stop()
	e.strain = time.Now()
	e.read(ctx)
	defer func() {
		if r := e.reader.Load(); r != nil {
			r.leave.Store(true)
			e.waiter.Wake()
			<-r.done
		}
		e.stopSampling()
		unhook()
		e.finish(sink)
	}()
	if err := e.opts.Begun(); err != nil {
		return err
	}
	e.telling, e.toldAll = time.Now(), false
	for {
		gone, any, err := e.turn(ctx, sink)
		if !any && time.Since(e.batched) >= capture.IdleBatch*9/10 { // a wait may be a little too short
			e.batchEnd(sink)
		}
		e.bePatient(sink)
		e.forget(gone)
		if e.tellDue() {
			// Processes that ended earlier are reported first.
			e.drain(sink)
			if e.lookAsleep(perfevent.Now(), false, sink) {
				e.batchEnd(sink)
			}
			e.toldAll = true
		}
		e.targets.Check(func(uint32) {})
		if err != nil || ctx.Err() != nil || e.targets.Left() == 0 {
			return err
		}
	}
}

const (
	// mostPatience is how long samples may lie in the ring, which has room for more and wakes the
	// reader when three eighths of it are used.
	mostPatience = 500 * time.Millisecond
	// offCPUPatience is the same if threads that slept are sampled: what they waited for is asked
	// when the samples are read.
	offCPUPatience = 100 * time.Millisecond
)

// patience returns how long samples may wait for their reader.
func (e *Engine) patience(sink capture.Sink) time.Duration {
	if e.progs.offCPU != nil {
		return perfevent.Patience(sink, offCPUPatience)
	}
	return perfevent.Patience(sink, mostPatience)
}

// bePatient decides how long samples may wait from now on. If they may wait for less time than lies between two of
// them, the next one wakes its reader: that is sooner, and costs less than to look for it again and again.
func (e *Engine) bePatient(sink capture.Sink) {
	d := e.patience(sink)
	alarm := d < e.between && e.progs.coll.Variables["eager"].Set(uint32(1)) == nil
	if alarm {
		d = pollRarely
	}
	e.alarmed.Store(alarm)
	e.patient.Store(int64(d))
}

// pollRarely is how often the rings are looked at if the next sample wakes their reader.
const pollRarely = 100 * time.Millisecond

// firstTell is how long after the start of recording the sleeps that began before it are reported,
// however many there are.
const firstTell = 300 * time.Millisecond

// tellDue reports whether it is time to report sleeps that go on.
func (e *Engine) tellDue() bool {
	every := e.opts.TellEvery(e.asleep)
	if !e.toldAll {
		every = e.briefest()
	}
	if e.progs.offCPU == nil || e.opts.Tell <= 0 || time.Since(e.telling) < every {
		return false
	}
	e.telling = time.Now()
	return true
}

// briefest returns the least duration of a sleep that is reported before it ends.
func (e *Engine) briefest() time.Duration {
	switch {
	case e.opts.TellMost <= 0:
		return 0
	case !e.toldAll:
		return min(firstTell, e.opts.Tell/2)
	}
	return e.opts.Tell / 2
}

// finish hands over what is left when sampling has ended.
func (e *Engine) finish(sink capture.Sink) {
	end := perfevent.Now()
	e.collectRest()
	e.walkAll(sink)
	if e.progs.offCPU != nil && e.lookAsleep(end, true, sink) {
		sink.BatchEnd()
		// Threads that woke up meanwhile report their sleep themselves.
		e.collectRest()
		e.walkAll(sink)
	}
}

func (e *Engine) batchEnd(sink capture.Sink) {
	sink.BatchEnd()
	e.batched = time.Now()
}

// Close frees everything; the programs and the events go away with it.
func (e *Engine) Close() error {
	for _, fd := range e.ticks {
		_ = unix.Close(fd)
	}
	e.ticks = nil
	if e.timers != nil {
		e.timers.Close()
	}
	e.mmaps.Close()
	e.waiter.Close()
	e.ring.close()
	e.kept.close()
	if e.progs != nil {
		e.progs.close()
	}
	return nil
}
