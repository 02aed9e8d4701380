package suspend

import (
	"context"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/priority"
)

const (
	// roundEvery is how often Run looks after the threads.
	roundEvery = 20 * time.Millisecond
	// restEvery is the same while no thread has run lately. The sleep scanner reports when one has.
	restEvery = 60 * time.Millisecond
	// mostPatience bounds how many of Go's Ps are kept while threads wait for stops.
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
	// Go gets one more P for each thread that dozes, and some for those that wait for stops,
	// besides those for others.
	patience := min(len(e.cpus), mostPatience) + 2
	e.patience.Store(int32(patience))
	defer priority.AddProcs(len(e.cpus) + patience)()
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

// pace sets the ticker to the necessary interval.
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
		e.wakeReader() // nobody has woken it
	}
}

// letGo reports that the targets are sampled (Options.Ready). A target that waited for that has
// executed another program when Ready returns, and samples from now on belong to that program.
func (e *Engine) letGo() error {
	if e.opts.Ready == nil {
		return e.opts.Begun()
	}
	defer e.waiting.Store(false)
	before := clock()
	if err := e.opts.Begun(); err != nil {
		return err
	}
	for _, p := range e.procs {
		e.list1(p, before)
		e.countFrom(p)
	}
	if e.scanner != nil {
		// Threads that slept until now waited to be released, or to execute another program.
		e.countSleep()
	}
	return nil
}

// finish hands over what is left when all sampling threads have ended.
func (e *Engine) finish(sink capture.Sink) {
	e.drain(sink, true)
	e.settle()
	// Samples that do not fit at once, or must be copied again, come with the next round.
	const most = 1 << 10
	for range most {
		if e.scanner == nil {
			break
		}
		more := e.scanner.last()
		e.refused = false
		if e.drain(sink, true); !more && !e.refused {
			break
		}
	}
	e.tellRest(sink)
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
		none := p.clock == p.ranFirst && p.clock != 0 // none of its threads has run since they were opened
		p.ranFirst, p.given, p.backlog, p.lost = 0, 0, 0, nil
		for _, th := range p.threads {
			at, a, late, ok := clock(), th.seen, th.waited.Load(), true
			if !none {
				at, a, late, ok = e.reader.exactAccount(th.schedFD)
			}
			if !ok {
				continue
			}
			th.final, th.last = final{}, 0
			th.sampled, th.from = a.run, a.run
			th.system, th.inKernel = unknownTime, 0
			if th.sleeper != nil {
				th.sleeper.count(at, a, late)
			}
		}
	}
}

// countFrom makes the CPU time of a process count from when it executed the program that its threads
// run: what the threads ran that ended then is in no sample.
func (e *Engine) countFrom(p *process) {
	e.mu.Lock() // sampling threads may find new ones
	defer e.mu.Unlock()
	total, due := cpuClock(p.pid), uint64(0)
	for _, th := range p.threads {
		if a, ok := e.reader.account(th.schedFD); ok {
			due += a.run - min(th.from, a.run)
		}
	}
	p.clock = total - min(due, total)
}

// countSleep makes what threads sleep count from now on.
func (e *Engine) countSleep() {
	e.mu.Lock() // sampling threads may find new ones
	defer e.mu.Unlock()
	for _, p := range e.procs {
		for _, th := range p.threads {
			if th.sleeper == nil {
				continue
			}
			if at, a, late, ok := e.reader.exactAccount(th.schedFD); ok {
				th.sleeper.count(at, a, late)
			}
		}
	}
}
