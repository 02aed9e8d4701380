package suspend

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Engine implements capture.Engine with ptrace.
type Engine struct {
	opts     capture.Options
	wall     int      // index of the wall event, -1 if not requested
	ticks    []uint16 // indices of the events that are sampled by time on a CPU
	why      string   // why no better engine was used
	maxStack int
	wary     bool  // calls that a stop interrupts cannot be mended: stop only where there is none
	blind    bool  // for tests: behave as if the kernel did not show the scheduler's times
	cpus     []int // where sampling threads may run

	mu       sync.Mutex // guards hot and what its threads hold
	hot      []*thread  // threads that ran lately
	churning []*process // processes whose threads come and go
	born     []*thread  // found by sampling threads, not reported yet

	// Used by Run's goroutine.
	procs   map[int]*process
	idle    []*thread
	notices []capture.ProcessEvent
	others  map[int]bool // processes that are not targets
	looked  int64        // ns, when children were last looked for
	began   int64        // ns, when Run began
	reader  reader
	batch   []item
	refused bool // a sleep's sample was, since this was last cleared
	snap    capture.Snapshot
	given   given
	closing []*process // processes that have ended, of which not everything was handed over
	churned int64      // ns, when churn was last called while there was something to do
	batched time.Time  // when a batch last ended

	parting sync.Mutex // guards parted
	parted  []*thread  // threads that have ended, and whose rests are to be handed over

	adding  sync.Mutex // guards added
	added   []*process
	list    []*cpuSampler
	scanner *sleepScanner // for wall time; nil if not requested
	workers sync.WaitGroup

	patience               atomic.Int32 // how many more sampling threads may keep Go's P while they wait
	stopping               atomic.Bool
	ended                  atomic.Int64 // ns, when recording ended; 0: not yet
	resting                atomic.Bool  // Run is to be woken when a thread has run
	waiting                atomic.Bool  // targets may still be a copy of candid that waits to be released
	wake                   chan struct{}
	samples, bytes         atomic.Uint64
	outOfReach, unfollowed atomic.Uint64
}

var (
	_ capture.Engine        = (*Engine)(nil)
	_ capture.CPUAccounting = (*Engine)(nil)
)

// Open checks whether the targets may be traced; nothing is touched before Run. why is the reason
// that no better engine is used, if any, for Describe. If a target is already being traced the
// error is a *TracedError.
func Open(opts capture.Options, why string) (*Engine, error) {
	wall, ticks := -1, []uint16{0}
	for i, ev := range opts.Events {
		switch ev.Kind {
		case capture.CPUTime:
		case capture.Wall:
			wall = i
		default:
			return nil, fmt.Errorf("sample by %s: %w: suspending threads samples by cpu and wall only", ev.Name, capture.ErrUnsupported)
		}
		if i > 0 {
			ticks = append(ticks, uint16(i))
		}
	}
	if opts.Period <= 0 {
		return nil, fmt.Errorf("sample every %v: the period must be above zero", opts.Period)
	}
	if opts.All {
		return nil, fmt.Errorf("sample the whole machine: %w: suspending threads needs processes to be named; use -p", capture.ErrUnsupported)
	}
	// There is no thread with that ID: the kernel gets as far as to report so unless a filter
	// forbids the call.
	switch errno := seize(noSuchThread); errno {
	case unix.ESRCH:
	case unix.ENOSYS:
		return nil, fmt.Errorf("suspend threads: %w: a sandbox has no ptrace: %w", capture.ErrUnsupported, errno)
	default:
		return nil, fmt.Errorf("suspend threads: %w: a seccomp filter forbids ptrace (in a container, allow it or add CAP_SYS_PTRACE): %w", capture.ErrPermission, errno)
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("find the CPUs that candid may run on: %w", err)
	}
	e := &Engine{
		opts: opts, wall: wall, ticks: ticks, why: why, maxStack: largestStack, wary: !mends,
		procs: map[int]*process{}, wake: make(chan struct{}, 1),
	}
	if opts.MaxStack > 0 {
		e.maxStack = min(max(opts.MaxStack, 1024), largestStack)
	}
	if wall >= 0 {
		e.scanner = newLooker(e)
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			e.cpus = append(e.cpus, cpu)
		}
	}
	for _, pid := range opts.PIDs {
		if err := e.AddPID(pid); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

// noSuchThread is above every TID (PID_MAX_LIMIT).
const noSuchThread = 1<<31 - 1

// Name returns "suspend".
func (e *Engine) Name() string { return "suspend" }

// Describe returns what is used, for people.
func (e *Engine) Describe() string {
	what := "cpu time"
	if e.scanner != nil {
		what = "where they run; read from outside where they sleep"
		if len(e.ticks) > 1 {
			what = "cpu and wall time: " + what
		}
	}
	s := fmt.Sprintf("threads suspended by ptrace (%s, %.4g Hz), no kernel frames", what, 1/e.opts.Period.Seconds())
	if e.wary {
		s += fmt.Sprintf(", no threads that never run %v without waiting", time.Duration(clearOfCall))
	}
	if e.why != "" {
		s += ": " + e.why
	}
	return s
}

// AddPID makes a process a target. It may be called while Run runs.
func (e *Engine) AddPID(pid int) error {
	if pid <= 0 {
		return fmt.Errorf("sample process %d: a process id is above zero", pid)
	}
	p, err := openProcess(pid)
	if err != nil {
		return err
	}
	err = p.mayTrace()
	if err == nil && e.wall >= 0 {
		err = p.mayRead()
	}
	if err != nil {
		p.close()
		return err
	}
	e.adding.Lock()
	e.added = append(e.added, p)
	e.adding.Unlock()
	e.wakeReader()
	return nil
}

func (e *Engine) wakeReader() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// arenaSize returns room in bytes for the stacks of a fifth of a second, and for at least some of
// the largest.
func (e *Engine) arenaSize() int {
	want := 0.2 / e.opts.Period.Seconds() * 32768
	return int(min(max(want, 2<<20), 16<<20))
}

func (e *Engine) start() {
	e.stopping.Store(false)
	e.ended.Store(0)
	size := e.arenaSize()
	if e.list == nil {
		var list []*cpuSampler
		for _, cpu := range e.cpus {
			list = append(list, &cpuSampler{e: e, cpu: cpu, buffer: makeBuffer(size), news: make(chan struct{}, 1)})
		}
		e.mu.Lock() // a test looks at it from outside, with the lock
		e.list = list
		e.mu.Unlock()
	}
	for _, l := range e.list {
		l.open()
	}
}

// stop makes the sampling threads end.
func (e *Engine) stop() {
	e.ended.Store(clock())
	e.stopping.Store(true)
	for _, l := range e.list {
		l.rouse()
	}
}

// Stats returns the counts so far.
func (e *Engine) Stats() capture.Stats {
	s := capture.Stats{Samples: e.samples.Load(), Bytes: e.bytes.Load()}
	for _, w := range e.list {
		w.mu.Lock()
		s.Lost += w.counts.lost
		s.Throttled += w.counts.late
		w.mu.Unlock()
	}
	return s
}

// Stops returns how long threads have been stopped so far, and what else came of it.
func (e *Engine) Stops() Stops {
	var all stopCounts
	var c counts
	for _, w := range e.list {
		w.mu.Lock()
		all.addAll(&w.stops)
		c.add(&w.counts)
		w.mu.Unlock()
	}
	s := Stops{
		OutOfReach: e.outOfReach.Load(), Unfollowed: e.unfollowed.Load(), Raced: c.raced, Refused: c.refused,
		BrokenCalls: c.broken, MendedCalls: c.mended, Asleep: c.asleep, SamplingMissed: c.late, Stuck: c.stuck, Unsure: c.unsure,
	}
	for _, n := range all.n {
		s.Count += uint64(n)
	}
	s.Median, s.P99, s.Max = all.quantile(0.5), all.quantile(0.99), time.Duration(all.max)
	return s
}

// Close closes all descriptors. Run must have returned.
func (e *Engine) Close() error {
	e.adopt()
	if e.scanner != nil {
		e.scanner.close()
	}
	for pid, p := range e.procs {
		for _, th := range p.threads {
			th.close()
		}
		p.stacks.close()
		p.close()
		delete(e.procs, pid)
	}
	e.hot, e.idle = nil, nil
	return nil
}
