package perfevent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Scope is where the engine opens its events.
type Scope uint8

// Values of Scope.
const (
	Machine Scope = iota // one per CPU; sees threads of any age
	Threads              // one per thread and CPU; needs no privilege for one's own processes
)

const (
	// largestStack is the most bytes that the kernel copies (perf_event_attr.sample_stack_user).
	largestStack = 65528
	// defaultStack is how many bytes are copied if no size is requested: it holds nine of ten
	// stacks of large Java programs at half the cost of the largest.
	defaultStack = 32 << 10

	pollEvery = 100 * time.Millisecond
	// For a while, until the first sample, the reader polls more often.
	pollFirst  = 10 * time.Millisecond
	firstWhile = 500 * time.Millisecond
)

// Engine implements capture.Engine with the kernel's own copies.
type Engine struct {
	opts     capture.Options
	attr     Attr
	scope    Scope
	why      string // why the better engine was not used
	noKernel bool

	cpus    []int
	timers  *Timers // of Machine
	fds     []int   // events of Threads, and those that only listen
	rings   []*Ring
	ringOf  map[int]int // by CPU, the descriptor that owns the CPU's ring
	waiter  *Waiter
	tops    *stackTops
	running atomic.Bool

	targets *Targets

	mu sync.Mutex // guards fds and rings

	batch   []item
	batched time.Time // when a batch last ended
	rec     Record
	scratch [1 << 16]byte
	snap    capture.Snapshot
	paths   paths

	samples, bytes, lost, throttled atomic.Uint64
}

var _ capture.Engine = (*Engine)(nil)

// OpenEngine opens the events; nothing is sampled before Run. why is the reason that no better
// engine is used, if any, for Describe.
func OpenEngine(opts capture.Options, scope Scope, why string) (*Engine, error) {
	if len(opts.Events) > 1 {
		return nil, fmt.Errorf("sample by %d events at once: %w: give one", len(opts.Events), capture.ErrUnsupported)
	}
	if opts.Period <= 0 {
		return nil, fmt.Errorf("sample every %v: the period must be above zero", opts.Period)
	}
	if scope == Threads && opts.All {
		return nil, fmt.Errorf("sample the whole machine: %w: events per thread need threads to be named; use -p", capture.ErrUnsupported)
	}
	e := &Engine{opts: opts, scope: scope, why: why, targets: NewTargets(opts.All), ringOf: map[int]int{}, tops: newStackTops()}
	event := capture.Event{Name: "cpu"}
	if len(opts.Events) == 1 {
		event = opts.Events[0]
	}
	switch event.Kind {
	case capture.CPUTime, capture.Counter, capture.Tracepoint:
	default:
		return nil, fmt.Errorf("sample by %s: %w: it needs BPF", event.Name, capture.ErrUnsupported)
	}
	stack := defaultStack
	if opts.MaxStack > 0 {
		stack = min(max(opts.MaxStack, 512), largestStack) &^ 7
	}
	e.attr = Attr{
		Samples:   true,
		StackSize: uint32(stack), Layout: Layout{Callchain: true, RegsMask: RegsMask},
	}
	e.attr.For(event, opts.Period)
	if event.Kind == capture.Tracepoint {
		var err error
		if e.attr.Config, err = TracepointID(event.Point); err != nil {
			return nil, err
		}
		e.attr.Period = max(event.Period, 1)
	}
	e.noKernel = event.NoKernel
	if err := e.open(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Engine) open() (err error) {
	if e.cpus, err = OnlineCPUs(); err != nil {
		return err
	}
	if e.waiter, err = NewWaiter(); err != nil {
		return err
	}
	size := ringSize(e.opts.Period, int(e.attr.StackSize))
	e.attr.Wakeup = uint32(size / 4)
	if e.scope == Machine {
		if e.timers, err = OpenTimers(e.attr, e.cpus, e.opts.Period); err != nil {
			return err
		}
		err = e.timers.Each(func(cpu, fd int) error {
			if err := e.addRing(cpu, fd, size); err != nil {
				return err
			}
			return e.listen(Attr{}, -1, cpu)
		})
		if err != nil {
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

// ringSize returns the size for a quarter of a second of samples from one CPU.
func ringSize(period time.Duration, stack int) int {
	want := 0.25 / period.Seconds() * float64(stack+1024)
	size := 256 << 10
	for size < 16<<20 && float64(size) < want {
		size *= 2
	}
	return size
}

// addRing maps a ring, or a smaller one if the user's limit is reached.
func (e *Engine) addRing(cpu, fd, size int) error {
	r, err := MapRing(fd, size)
	for errors.Is(err, capture.ErrPermission) && size > 128<<10 {
		size /= 2
		r, err = MapRing(fd, size)
	}
	if err != nil {
		return err
	}
	e.rings = append(e.rings, r)
	e.ringOf[cpu] = fd
	return e.waiter.Add(fd)
}

// listen opens an event that counts nothing and reports, from now on, what happens to a thread (-1:
// to all) on a CPU. A launched program runs before it is sampled, and what it maps then must be
// known.
func (e *Engine) listen(a Attr, tid, cpu int) error {
	a.Quiet, a.Task = true, true
	fd, err := Open(a, tid, cpu)
	if err != nil {
		return err
	}
	e.fds = append(e.fds, fd)
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, e.ringOf[cpu]); err != nil {
		return fmt.Errorf("lead what happens on cpu %d into its ring: %w", cpu, err)
	}
	if err := Enable(fd); err != nil {
		return fmt.Errorf("listen to what happens on cpu %d: %w", cpu, err)
	}
	return nil
}

// Name returns "perf" or "perf-thread".
func (e *Engine) Name() string {
	if e.scope == Threads {
		return "perf-thread"
	}
	return "perf"
}

// Describe returns what is used and why nothing better is.
func (e *Engine) Describe() string {
	event := "cpu-clock"
	if e.attr.Kind != capture.CPUTime {
		event = e.attr.Name
	}
	per := "CPU"
	if e.scope == Threads {
		per = "thread"
	}
	rate := fmt.Sprintf("%.4g Hz", 1/e.opts.Period.Seconds())
	if e.attr.Kind != capture.CPUTime && e.attr.Freq == 0 {
		rate = fmt.Sprintf("each %d", e.attr.Period)
	}
	s := fmt.Sprintf("perf events, %.4g KiB stack copies (%s, %s per %s)", float64(e.attr.StackSize)/1024, event, rate, per)
	s += RateNote(e.opts.Period)
	if e.noKernel {
		s += ", without time spent in the kernel (kernel.perf_event_paranoid=" + Paranoid() + ")"
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
	if err := e.waiter.AddProcess(pid); err != nil {
		return fmt.Errorf("sample process %d: %w", pid, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.scope == Threads {
		if err := e.addThreads(pid); err != nil {
			return err
		}
	}
	e.targets.Add(uint32(pid))
	return nil
}

// Run samples until ctx ends or no target is left.
func (e *Engine) Run(ctx context.Context, sink capture.Sink) error {
	defer e.waiter.WakeOn(ctx)()
	if err := e.start(); err != nil {
		return err
	}
	defer e.drain(sink)
	defer e.stop()
	if err := e.opts.Begun(); err != nil {
		return err
	}
	begin := time.Now()
	for {
		poll := Patience(sink, pollEvery)
		if e.samples.Load() == 0 && time.Since(begin) < firstWhile {
			poll = pollFirst
		}
		gone, err := e.waiter.Wait(poll)
		if err != nil {
			return err
		}
		e.drain(sink)
		e.forget(gone)
		e.targets.Check(e.tops.forgetProcess)
		if ctx.Err() != nil || e.targets.Left() == 0 {
			return nil
		}
		if e.timers != nil {
			if err := e.timers.Retune(Now()); err != nil {
				return err
			}
		}
	}
}

// Patience returns how long records may wait for their reader, at most most if the sink is in no
// hurry.
func Patience(sink capture.Sink, most time.Duration) time.Duration {
	if h, ok := sink.(capture.BatchScheduler); ok {
		if d := h.NextBatch(); d > 0 {
			return min(d, most)
		}
	}
	return min(pollEvery, most)
}

func (e *Engine) start() error {
	if e.timers != nil {
		return e.timers.Start()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running.Store(true)
	for _, fd := range e.fds {
		if err := Enable(fd); err != nil {
			return fmt.Errorf("start a thread's perf event: %w", err)
		}
	}
	return nil
}

func (e *Engine) stop() {
	if e.timers != nil {
		e.timers.Stop()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running.Store(false)
	for _, fd := range e.fds {
		_ = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0)
	}
}

func (e *Engine) forget(pids []int) {
	for _, pid := range pids {
		e.targets.Forget(uint32(pid))
		e.tops.forgetProcess(uint32(pid))
	}
}

// Stats returns the counts so far.
func (e *Engine) Stats() capture.Stats {
	return capture.Stats{Samples: e.samples.Load(), Lost: e.lost.Load(), Throttled: e.throttled.Load(), Bytes: e.bytes.Load()}
}

// Close frees everything.
func (e *Engine) Close() error {
	for _, r := range e.rings {
		_ = r.Close()
	}
	e.rings = nil
	if e.timers != nil {
		e.timers.Close()
	}
	for _, fd := range e.fds {
		_ = unix.Close(fd)
	}
	e.fds = nil
	e.waiter.Close()
	e.tops.close()
	return nil
}
