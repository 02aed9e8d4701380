package winsuspend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/winsys"
)

// Engine implements capture.Engine with SuspendThread.
type Engine struct {
	opts     capture.Options
	wall     int // index of the wall event, -1 if not requested
	ticks    int // index of the event that is sampled by time on a CPU, -1 if none
	objects  bool
	watch    *watchman
	maxStack int

	adding sync.Mutex
	added  []*process

	s     sampler
	loads loads
	stuck bool // the sampler did not return

	due    atomic.Uint64 // ns of winsys.Clock: what has not been walked then never is; 0: no limit
	unread uint64        // samples that were not walked for that reason

	samples, bytes, lost, slowed atomic.Uint64
	ended                        atomic.Uint64
	stops                        stopTimes
	guards                       atomic.Int32 // guards that were started again
	freed                        atomic.Int32 // stops that the guard has ended
	children                     atomic.Uint64

	notes struct {
		sync.Mutex
		lines []string
	}
}

var (
	_ capture.Engine        = (*Engine)(nil)
	_ capture.CPUAccounting = (*Engine)(nil)
	_ capture.Noter         = (*Engine)(nil)
)

// Open checks whether the targets may be suspended; nothing is touched before Run.
func Open(opts capture.Options, _ string) (*Engine, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	e := &Engine{opts: opts, wall: -1, ticks: -1, maxStack: largestStack}
	for i, ev := range opts.Events {
		switch ev.Kind {
		case capture.CPUTime:
			e.ticks = i
		case capture.Wall:
			e.wall = i
		default:
			return nil, fmt.Errorf("sample by %s: %w: on Windows candid samples by cpu and wall", ev.Name, capture.ErrNoEvent)
		}
	}
	if len(opts.Events) == 0 {
		e.ticks = 0
	}
	if opts.Period <= 0 {
		return nil, fmt.Errorf("sample every %v: the period must be above zero", opts.Period)
	}
	if opts.MaxStack > 0 {
		e.maxStack = min(max(opts.MaxStack, 1024), largestStack)
	}
	e.s.init(e)
	e.loads.said = make(chan struct{}, 1)
	for _, pid := range opts.PIDs {
		if err := e.AddPID(pid); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	var err error
	if e.watch, err = newWatchman(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if e.objects = haveStateChange() && os.Getenv("CANDID_GUARD") == ""; e.objects {
		return e, nil
	}
	// The guard is there before the recording begins: its start does not count as recorded time.
	if err = e.watch.start(); err == nil {
		err = e.watch.await()
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Name returns "suspend".
func (e *Engine) Name() string { return "suspend" }

// Describe returns what is used, for people.
func (e *Engine) Describe() string {
	what := "cpu time"
	if e.wall >= 0 {
		what = "wall time"
		if e.ticks >= 0 {
			what = "cpu and wall time"
		}
	}
	safe := "a guard process lets go if candid is ended"
	if e.objects {
		safe = "the kernel lets go if candid is ended"
	}
	return fmt.Sprintf("threads suspended for a copy (%s, %.4g Hz; %s), no kernel frames", what, 1/e.opts.Period.Seconds(), safe)
}

// AddPID makes a process a target. It may be called while Run runs.
func (e *Engine) AddPID(pid int) error {
	if pid <= 0 {
		return fmt.Errorf("sample process %d: a process id is above zero", pid)
	}
	if pid == os.Getpid() {
		return fmt.Errorf("sample process %d: it is candid itself, which cannot suspend the thread that samples: %w", pid, capture.ErrUnsupported)
	}
	p, err := openProcess(pid)
	if err != nil {
		return err
	}
	e.adding.Lock()
	e.added = append(e.added, p)
	e.adding.Unlock()
	return nil
}

// CPUTimes implements capture.CPUAccounting by the list of all threads, which is read once for all
// targets: it costs as much as that of one.
func (e *Engine) CPUTimes(pid int) map[int]uint64 {
	if e.stuck {
		return nil
	}
	if now := winsys.Clock(); e.s.taken == 0 || now-e.s.taken > accountAge {
		if e.s.snap.Take() != nil {
			return nil
		}
		e.s.taken = now
	}
	info := e.s.snap.Process(uint32(pid))
	if p := e.s.procs[pid]; info == nil || p != nil && p.created != 0 && p.created != info.Created {
		return nil
	}
	out := make(map[int]uint64, len(info.Threads))
	for i := range info.Threads {
		out[int(info.Threads[i].TID)] = info.Threads[i].CPU()
	}
	return out
}

// accountAge is how old a list of threads may be of which CPUTimes takes its answer, ns.
const accountAge = 50e6

// Run samples until ctx ends or no target is left.
func (e *Engine) Run(ctx context.Context, sink capture.Sink) error {
	if err := e.s.list(true); err != nil {
		return err
	}
	if err := e.s.prepare(); err != nil {
		return err
	}
	if err := e.opts.Begun(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- e.s.run() }()
	watched := make(chan struct{})
	go e.loads.run(watched)
	defer close(watched)
	// Sampling ends on time, also while samples are being walked; what is left of those is given up
	// soon after.
	onTime := context.AfterFunc(ctx, func() {
		e.due.Store(winsys.Clock() + uint64(lastWalks))
		e.s.stop()
	})
	defer onTime()
	ticker := time.NewTicker(batchEvery)
	defer ticker.Stop()
	var err error
	over := false
	for !over {
		select {
		case <-ctx.Done():
			over = true
			continue
		case err = <-done:
			over, done = true, nil
			continue
		case <-e.loads.said:
		case <-ticker.C:
		}
		e.deliver(sink)
	}
	e.s.stop()
	if done != nil {
		select {
		case err = <-done:
		case <-time.After(stopPatience):
			// Its page says whether a thread stands: the guard lets go of it when candid ends.
			e.stuck = true
			e.note(fmt.Sprintf("the system did not return from a call on a thread within %v: candid went on without it", stopPatience))
		}
	}
	e.ended.Store(e.s.stopped.Load())
	e.deliver(sink)
	if e.unread > 0 {
		e.note(fmt.Sprintf("%d samples were not walked: the recording had ended, and candid had got too little of the CPUs to walk them before", e.unread))
	}
	return err
}

// lastWalks is for how long samples are walked after the recording has ended.
const lastWalks = 80 * time.Millisecond

// stopPatience is how long the last copy of a thread may take. In Wine a call for a thread that ends
// may never return.
const stopPatience = 5 * time.Second

// batchEvery is how often samples are handed over.
const batchEvery = 200 * time.Millisecond

// Stats returns the counts so far.
func (e *Engine) Stats() capture.Stats {
	return capture.Stats{Samples: e.samples.Load(), Bytes: e.bytes.Load(), Lost: e.lost.Load(), Throttled: e.slowed.Load(), Ended: e.ended.Load()}
}

// Notes returns how long threads were suspended, and what else happened.
func (e *Engine) Notes() []string {
	var out []string
	if n, median, p99, most := e.stops.read(); n > 0 {
		out = append(out, fmt.Sprintf("threads were suspended %d times: half of them for less than %v, 99 %% for less than %v, at most %v", n, median, p99, most))
	}
	if n := e.freed.Load(); n > 0 {
		out = append(out, fmt.Sprintf("candid's guard let go of a thread %d times, because candid got no CPU while it had the thread suspended; those samples were dropped", n))
	}
	if e.opts.Children && e.opts.Started != nil {
		if all, ok := e.opts.Started(); ok && all > e.children.Load()+1 {
			out = append(out, fmt.Sprintf("%d of %d processes had ended before candid could look at them", all-e.children.Load()-1, all))
		}
	}
	if n := e.guards.Load(); n > 0 {
		out = append(out, fmt.Sprintf("candid's guard was ended by something %d times; nothing was sampled until there was another one", n))
	}
	e.notes.Lock()
	defer e.notes.Unlock()
	return append(out, e.notes.lines...)
}

func (e *Engine) note(line string) {
	e.notes.Lock()
	defer e.notes.Unlock()
	if len(e.notes.lines) < 16 {
		e.notes.lines = append(e.notes.lines, line)
	}
}

// Close closes all handles and ends the guard. Run must have returned.
func (e *Engine) Close() error {
	if e.stuck {
		return nil // its goroutine may still use all of it
	}
	e.s.close()
	for _, p := range e.added {
		p.close()
	}
	e.added = nil
	if e.watch != nil {
		e.watch.close()
		e.watch = nil
	}
	return nil
}

// exit is the notice of a process's end.
func exit(p *process) capture.ProcessEvent {
	return capture.ProcessEvent{
		Kind: capture.Exit, Time: winsys.Clock(), PID: uint32(p.pid), TID: uint32(p.pid), Last: true, Outcome: p.outcome(),
	}
}

// mayOpen reports whether an error of opening a process means that it exists and is not permitted.
func mayOpen(err error) bool {
	return errors.Is(err, target.ErrPermission) || errors.Is(err, target.ErrUnsupported)
}
