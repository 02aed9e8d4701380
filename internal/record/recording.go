package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/launch"
	"github.com/candid-profiler/candid/internal/priority"
	"github.com/candid-profiler/candid/internal/runtimes/supported"
)

// Recording is a recording that is being made, from Start until Stop. Its methods may be called from
// any goroutine, Stop only once.
type Recording struct {
	s       *session
	engine  capture.Engine
	release []func()      // undoes what Start did, in reverse order
	cancel  func()        // ends sampling
	ended   chan struct{} // closed when the engine has ended

	closeEngine func() // any number of times

	child   *launch.Child // nil if nothing was launched
	program string        // what was launched

	// These are set when ended is closed.
	named    func() // ends what endOnTime began
	err      error  // the engine's
	allEnded bool   // it ended because all targets had
}

// Run records until the duration has passed, the targets have ended or ctx is done. Whatever was
// recorded is in the Result, even if there is an error. A launched program goes on when recording
// ends: Result.Wait returns its exit code.
func Run(ctx context.Context, o Options) (*Result, error) {
	r, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	<-r.Ended()
	return r.Stop()
}

// Start attaches to the targets and begins to sample them. Sampling ends when the duration has
// passed, the targets have ended, ctx is done or Stop is called, which has to be called in any case.
func Start(ctx context.Context, o Options) (r *Recording, err error) {
	events, err := o.check()
	if err != nil {
		return nil, err
	}
	s := newSession(&o)
	r = &Recording{s: s, ended: make(chan struct{}), release: []func(){s.close}}
	defer func() {
		if err != nil {
			r.undo()
			r = nil
		}
	}()
	s.lines = &lines{log: s.o.Log} // messages come from several goroutines
	s.o.Log = s.lines.say
	if o.SaveBroken.Dir != "" {
		if err = s.saveTo(o.SaveBroken); err != nil {
			return r, err
		}
		r.release = append(r.release, s.broken.Close)
	}
	period, moved, why := capture.ChooseRate(o.Hz)
	s.period = period
	// The goroutine that empties an engine's buffers must not wait for those that read symbols, when
	// the kernel has preempted them.
	r.release = append(r.release, priority.AddProcs(1))
	// The same process given twice is one target.
	o.PIDs = slices.Compact(slices.Sorted(slices.Values(o.PIDs)))
	opts := capture.Options{PIDs: o.PIDs, All: o.All, Children: o.Children, Period: period, Events: events, MinSleep: o.MinSleep, Reads: &s.reads}
	opts.Tell = tellEvery
	if len(o.Command) == 0 {
		// People and scripts take this line for the beginning.
		opts.Sampling = func() {
			o.Log(r.engine.Describe())
			if moved {
				o.Log(why)
			}
		}
	}
	if o.Live == nil {
		opts.TellMost = tellMost
	}
	if len(o.Command) > 0 {
		if err = r.launch(&opts); err != nil {
			return r, err
		}
	}
	if o.Attaching != nil {
		o.Attaching()
	}
	// Loading the engine takes as long as examining the targets.
	for _, e := range events {
		s.events = append(s.events, profileEvent(e, opts))
	}
	loading := openEngine(opts, o.Engine)
	if r.child == nil {
		err = s.attach()
	}
	engine, engineErr := loading()
	if err = cmp.Or(err, engineErr); err != nil {
		if r.child != nil {
			r.child.Kill()
		}
		if engineErr == nil {
			err = errors.Join(err, engine.Close())
		}
		return r, err
	}
	r.engine, r.closeEngine = engine, sync.OnceFunc(func() { _ = engine.Close() })
	r.release = append(r.release, r.closeEngine)
	// An engine that stops threads to examine them must not make them wait for a CPU of its own.
	if o.Nice || engine.Name() == "suspend" {
		r.release = append(r.release, s.keepTime())
	}
	if r.child != nil {
		o.Log(engine.Describe()) // nothing runs unsampled, and what follows is held back while the program runs
		if moved {
			o.Log(why)
		}
	}
	if o.Attached != nil {
		s.kernel.Open()
		o.Attached()
	}

	// Attaching took a while, in which the targets ran unsampled.
	for _, p := range s.procs {
		p.markCPU(s.cpuTimes(p, engine))
	}
	var start time.Time
	s.start, start = moment()
	s.ends.start = start
	s.replaced()
	s.begin(engine, start)
	run, cancel := context.WithCancel(ctx)
	if o.Duration > 0 {
		run, cancel = context.WithTimeout(ctx, o.Duration)
	}
	r.cancel = cancel
	if r.child != nil && o.Output == nil {
		s.lines.hold()
	}
	go r.sample(run)
	return r, nil
}

// launch starts the program to record, stopped before its first instruction; the engine lets it run.
func (r *Recording) launch(opts *capture.Options) error {
	s, o := r.s, r.s.o
	argv := o.Command
	if !o.NoJVMFlags {
		for _, rt := range supported.Runtimes {
			if rt.Launch == nil {
				continue
			}
			var said string
			if argv, said = rt.Launch(argv); said != "" {
				o.Log(said + " (--no-jvm-flags to leave it alone)")
			}
		}
	}
	var set []string
	if o.DotNetInlines {
		for _, rt := range supported.Runtimes {
			set = append(set, rt.InlineEnv...)
		}
	}
	child, err := o.launch(argv, set)
	if err != nil {
		return err
	}
	if len(set) > 0 {
		s.note("launched with " + strings.Join(set, " ") + ": .NET records which methods it inlines, in code that it compiles while the program runs")
	}
	r.child, r.program = child, argv[0]
	if o.Launched != nil {
		o.Launched(child.Signal)
	}
	opts.PIDs, opts.Started = []int{child.PID}, child.Processes
	opts.Ready = func() error {
		begin, err := child.Release()
		if err == nil {
			s.launch(uint32(child.PID), begin)
		}
		return err
	}
	return nil
}

// lastReads is how long a read of a target's memory may wait after the end of the recording.
const lastReads = 60 * time.Millisecond

// sample runs the engine until it ends.
func (r *Recording) sample(ctx context.Context) {
	// Reads that remain after the end of the recording are made soon or never.
	soon := context.AfterFunc(ctx, func() { r.s.reads.By(time.Now().Add(lastReads)) })
	r.named = r.s.endOnTime(ctx)
	// Targets' memory is read here. What measures the CPU time of a thread of its own does not read any.
	r.s.reads.Unlocked(true)
	r.err = r.engine.Run(ctx, r.s)
	r.s.reads.Unlocked(false)
	soon()
	if r.allEnded = r.err == nil && ctx.Err() == nil; r.allEnded {
		r.named() // nobody said when it ends: all names are waited for
	}
	r.s.between.end()
	close(r.ended)
}

// Ended returns a channel that is closed when sampling has ended.
func (r *Recording) Ended() <-chan struct{} { return r.ended }

// ErrEnded is wrapped by errors that say that a recording has ended.
var ErrEnded = errors.New("the recording has ended")

// AddTarget samples one more process from now on, until it ends. A recording of the whole machine
// has it already.
func (r *Recording) AddTarget(pid int) error {
	s := r.s
	if s.o.All {
		return nil
	}
	var err error
	added := false
	s.between.do(func() {
		switch {
		case s.between.over:
			err = fmt.Errorf("record process %d: %w", pid, ErrEnded)
		case s.procs[uint32(pid)] == nil || s.procs[uint32(pid)].gone:
			added = true
			err = s.addTarget(pid)
		case !slices.Contains(s.o.PIDs, pid): // sampled as a target's child
			s.follows(pid)
		}
	})
	if err != nil || !added {
		return err
	}
	// The engine may wait for the goroutine that it calls the session from.
	if err = r.engine.AddPID(pid); err != nil {
		s.between.do(func() { s.dropTarget(pid) })
	}
	return err
}

// Rotate ends what was recorded so far and returns it. Sampling goes on, and belongs to the next part
// of the recording, whose times begin with 0 now; each sample is in one of the two parts. next
// receives the samples of the next part as they come, as Options.Beside did those of the first; it
// may be nil. A part that is handed to Options.Live cannot be rotated: nobody keeps it.
func (r *Recording) Rotate(next Live) (*Result, error) {
	s := r.s
	if s.o.Live != nil {
		return nil, fmt.Errorf("%w: a recording whose samples are handed on has no parts", ErrUsage)
	}
	var p *part
	s.between.do(func() {
		if !s.between.over {
			p = s.nextPart(next)
		}
	})
	if p == nil {
		return nil, fmt.Errorf("begin another part: %w", ErrEnded)
	}
	return p.result(s), nil
}

// Stop ends the recording and returns its last part, which is all of it if Rotate was not called.
func (r *Recording) Stop() (*Result, error) {
	defer r.undo()
	r.cancel()
	<-r.ended
	s := r.s
	s.lines.release()
	if s.broken != nil {
		s.broken.Hurry()
	}
	if r.child != nil {
		if s.launched == nil {
			r.child.Kill()
			return nil, cmp.Or(r.err, fmt.Errorf("%s ended before it could be recorded", r.program))
		}
	} else {
		s.lastEnds(r.allEnded)
	}
	s.hasty.Store(true)
	p := s.endPart(r.engine)
	r.named()
	if s.broken != nil {
		wait := brokenGrace
		if r.allEnded {
			wait = brokenPatience
		}
		s.o.Log(s.broken.End(wait))
	}
	// From here on the memory of the targets' tables and the engine's rings is used to write what
	// was recorded.
	s.letGo()
	r.closeEngine()
	res := p.result(s)
	res.Early, res.child = r.child == nil && r.allEnded && s.o.Duration > 0, r.child
	err := r.err
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return res, err
}

// undo gives back what Start took.
func (r *Recording) undo() {
	for _, f := range slices.Backward(r.release) {
		f()
	}
	r.release = nil
}

// between runs what other goroutines want done with a session between two batches, when the engine's
// goroutine is not using it.
type between struct {
	mu   sync.Mutex
	list []func()
	over bool // there are no more batches; do runs everything itself
}

// do runs f between two batches, or when there are no more, and waits for it.
func (b *between) do(f func()) {
	b.mu.Lock()
	if b.over {
		defer b.mu.Unlock()
		f()
		return
	}
	done := make(chan struct{})
	b.list = append(b.list, func() { defer close(done); f() })
	b.mu.Unlock()
	<-done
}

// run does what is waiting. It is called by the goroutine that has the session.
func (b *between) run() {
	b.mu.Lock()
	list := b.list
	b.list = nil
	b.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// end does what is waiting after the last batch.
func (b *between) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	for _, f := range b.list {
		f()
	}
	b.list = nil
}
