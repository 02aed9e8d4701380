package suspend

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Engine is capture.Engine by ptrace.
type Engine struct {
	opts     capture.Options
	wall     int      // index of that event, -1: it is not asked for
	ticks    []uint16 // indices of the events that time on a CPU is a sample of
	why      string   // no better engine was taken
	maxStack int
	wary     bool  // calls that a stop breaks off cannot be mended: stop only where there is none
	blind    bool  // for tests: as where the kernel does not show the scheduler's notes
	cpus     []int // where sampling threads may run

	mu       sync.Mutex // of hot and of what the threads in it hold
	hot      []*thread  // those that ran lately
	churning []*process // those whose threads come and go
	born     []*thread  // found by sampling threads, not told of yet

	// Of Run's goroutine.
	procs   map[int]*process
	idle    []*thread
	notices []capture.ProcessEvent
	others  map[int]bool // processes that are no targets
	looked  int64        // ns, for children
	began   int64        // ns, when Run began
	reader  reader
	batch   []item
	refused bool // a sleep's sample, since last cleared
	snap    capture.Snapshot
	given   given
	batched time.Time // when a batch ended last

	adding  sync.Mutex // of added
	added   []*process
	list    []*cpuSampler
	scanner *sleepScanner // of wall time; nil: it is not asked for
	workers sync.WaitGroup

	patience               atomic.Int32 // how many more sampling threads may keep Go's processor while they wait
	stopping               atomic.Bool
	ended                  atomic.Int64 // ns, when that was; 0: not yet
	resting                atomic.Bool  // Run is to be woken when a thread has run
	waiting                atomic.Bool  // targets may still be what they were before they were let go
	wake                   chan struct{}
	samples, bytes         atomic.Uint64
	outOfReach, unfollowed atomic.Uint64
}

var (
	_ capture.Engine        = (*Engine)(nil)
	_ capture.CPUAccounting = (*Engine)(nil)
)

// Open looks whether the targets may be traced; nothing is touched before Run.
// The reason why no better engine is used, if any, goes into Describe. Where a
// target is being traced already the error is a *TracedError.
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
	// There is no thread of that number: the kernel gets as far as to say so
	// unless a filter forbids the call.
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

// noSuchThread is above every thread's number (PID_MAX_LIMIT).
const noSuchThread = 1<<31 - 1

// Name is "suspend".
func (e *Engine) Name() string { return "suspend" }

// Describe says what is used.
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

const (
	// roundEvery is how often Run looks after threads.
	roundEvery = 20 * time.Millisecond
	// restEvery is that while no thread has run lately. The sleep scanner says when one has.
	restEvery = 60 * time.Millisecond
	// mostPatience bounds how many of Go's processors are kept while threads wait for stops.
	mostPatience = 8
	// pollEvery is how long samples may wait for their reader, ns.
	pollEvery = 100e6
)

// Run samples until ctx ends or no target is left.
func (e *Engine) Run(ctx context.Context, sink capture.Sink) error {
	prepareSignals()
	now := clock()
	e.began = now
	e.look(now)
	if len(e.procs) == 0 {
		return nil
	}
	e.begin()
	e.given = given{}
	e.waiting.Store(e.opts.Ready != nil)
	// One of Go's processors for each thread that dozes, and some for those that wait for
	// stops, besides those for others.
	patience := min(len(e.cpus), mostPatience) + 2
	e.patience.Store(int32(patience))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + len(e.cpus) + patience))
	e.start()
	defer e.finish(sink)
	defer e.rest()
	defer e.stop()
	if err := e.letGo(); err != nil {
		return err
	}
	if e.scanner != nil {
		e.workers.Add(1)
		go e.scanner.run()
	}
	ticker := time.NewTicker(roundEvery)
	defer ticker.Stop()
	drained := now
	for {
		full := false
		select {
		case <-ctx.Done():
			return nil
		case <-e.wake:
			full = true
		case <-ticker.C:
		}
		now := clock()
		e.remind(now)
		e.look(now)
		if full || now-drained >= pollEvery {
			drained = now
			e.drain(sink, false)
		}
		if len(e.procs) == 0 {
			return nil
		}
		e.pace(ticker)
	}
}

// pace makes the ticker as fast as it has to be.
func (e *Engine) pace(ticker *time.Ticker) {
	e.mu.Lock()
	rests := e.scanner != nil && !e.opts.Children && e.nobody()
	e.mu.Unlock()
	if e.resting.Swap(rests) == rests {
		return
	}
	if !rests {
		ticker.Reset(roundEvery)
		return
	}
	ticker.Reset(restEvery)
	if e.scanner.news.Load() {
		e.wakeReader() // it was not woken
	}
}

// letGo says that targets are sampled. One that waited for that has become another
// program when it is told, and it is this program that samples from now on are of.
func (e *Engine) letGo() error {
	if e.opts.Ready == nil {
		return nil
	}
	defer e.waiting.Store(false)
	before := clock()
	if err := e.opts.Begun(); err != nil {
		return err
	}
	for _, p := range e.procs {
		e.list1(p, before)
	}
	if e.scanner != nil {
		// What slept until now waited to be let go, or to become another program.
		e.countSleep(clock())
	}
	return nil
}

// finish hands over what is left when all sampling threads have ended.
func (e *Engine) finish(sink capture.Sink) {
	e.drain(sink, true)
	e.tellRest(sink)
	// What does not fit in at once, or has to be copied again, comes with the next round.
	const most = 1 << 10
	for range most {
		if e.scanner == nil {
			return
		}
		more := e.scanner.last()
		e.refused = false
		if e.drain(sink, true); !more && !e.refused {
			return
		}
	}
}

// rest waits until all sampling threads have ended.
func (e *Engine) rest() {
	done := make(chan struct{})
	go func() {
		e.workers.Wait()
		close(done)
	}()
	ticker := time.NewTicker(roundEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			e.remind(clock())
		}
	}
}

// begin makes samples account for what threads run from now on.
func (e *Engine) begin() {
	if e.scanner != nil {
		e.scanner.begin()
	}
	for _, p := range e.procs {
		p.clock = cpuClock(p.pid)
		none := p.clock == p.ranFirst && p.clock != 0 // of its threads has run since they were opened
		p.ranFirst = 0
		for _, th := range p.threads {
			a, late, ok := th.seen, th.waited.Load(), true
			if !none {
				a, late, ok = e.reader.accountAndDelay(th.schedFD)
			}
			if !ok {
				continue
			}
			th.sampled, th.from = a.run, a.run
			th.system, th.inKernel = unknownTime, 0
			if th.sleeper != nil {
				th.sleeper.count(clock(), a, late)
			}
		}
	}
}

// countSleep makes what threads sleep count from now on.
func (e *Engine) countSleep(now int64) {
	e.mu.Lock() // sampling threads may find new ones
	defer e.mu.Unlock()
	for _, p := range e.procs {
		for _, th := range p.threads {
			if th.sleeper == nil {
				continue
			}
			if a, late, ok := e.reader.accountAndDelay(th.schedFD); ok {
				th.sleeper.count(now, a, late)
			}
		}
	}
}

// CPUTimes is what the accounts that are kept open say, and after Run what they said when
// recording ended.
func (e *Engine) CPUTimes(pid int) map[int]uint64 {
	now := clock()
	for _, p := range e.adopt() {
		e.list1(p, now)
	}
	p := e.procs[pid]
	if p == nil || p.gone || e.unfollowed.Load() > 0 {
		return nil
	}
	out := make(map[int]uint64, len(p.threads))
	for tid, th := range p.threads {
		if e.ended.Load() != 0 && th.last != 0 {
			out[tid] = th.last
		} else if p.ranFirst != 0 {
			out[tid] = th.seen.run // they were listed just now
		} else if sl := th.sleeper; sl != nil && sl.quiet && sl.group.sure && sl.same == e.scanner.end {
			out[tid] = sl.seen.run
		} else if a, ok := e.reader.account(th.schedFD); ok {
			out[tid] = a.run
		}
	}
	return out
}

// arenaSize is room for the stacks of a fifth of a second, and for some of the
// largest at least.
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
		e.mu.Lock() // a test looks at it with the lock, from outside
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

// Stats is what was done so far.
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

// Stops is how long threads were stopped so far, and what else came of it.
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

var (
	epoch     = time.Now()
	epochMono = monotonic() - int64(time.Since(epoch))
)

func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// clock is CLOCK_MONOTONIC in ns, without a system call.
func clock() int64 { return epochMono + int64(time.Since(epoch)) }
