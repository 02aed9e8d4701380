// Package agent records a whole machine for good: it decides which service each process belongs to,
// keeps the history in a store, pushes it to servers, and answers questions about itself.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/agent/config"
	"github.com/candid-profiler/candid/internal/agent/service"
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/record"
)

// Options are what the agent is started with.
type Options struct {
	Path    string          // of the file
	Version string          // of candid
	Log     func(string)    // receives one line for people
	Reload  <-chan struct{} // each value reads the file again
	// Part is how long each profile is that goes to the store and to servers; 30 s if 0.
	Part time.Duration
	// Ready is called once when sampling has begun; may be nil.
	Ready func()
}

// DefaultPart is Options.Part if it is 0: what a crash can lose.
const DefaultPart = 30 * time.Second

// Agent is a running agent.
type Agent struct {
	o       Options
	began   time.Time
	metrics metrics
	names   *service.Containers
	served  table
	limiter limiter
	capture capturer

	mu      sync.Mutex
	conf    *config.Config
	loaded  time.Time // when conf was read
	refused string    // why the file that was read last is not in force; "" if it is
	rec     *record.Recording
	over    bool // rec has been stopped
	engine  string
	sinks   *sinks
	ready   bool
}

// present returns where profiles go now.
func (a *Agent) present() *sinks {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sinks
}

// config returns the file that is in force. It is not changed.
func (a *Agent) config() *config.Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.conf
}

// Run runs the agent until ctx is done. What was sampled is stored and pushed when it returns.
func Run(ctx context.Context, o Options) error {
	conf, err := config.Load(o.Path)
	if err != nil {
		return err
	}
	a := &Agent{o: o, began: time.Now(), conf: conf, loaded: time.Now(), names: service.NewContainers(service.LogDir)}
	a.o.Part = cmp.Or(a.o.Part, DefaultPart)
	a.limiter.limit(a)
	a.capture.a = a
	a.capture.ctx, a.capture.cancel = context.WithCancel(context.Background())
	defer a.capture.cancel()
	a.capture.clean()
	if m := conf.Limits.Memory; m > 0 {
		// The limit is on resident memory, of which the heap is most.
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(goMemory(m)))
	}
	if a.sinks, err = a.openSinks(conf); err != nil {
		return err
	}
	servers, err := a.serve(conf)
	if err == nil {
		err = a.start()
	}
	if err != nil {
		servers.close()
		return errors.Join(err, a.sinks.close(0))
	}
	a.setReady(true)
	if o.Ready != nil {
		o.Ready()
	}
	err = a.loop(ctx, &servers)
	a.setReady(false)
	a.capture.end()
	servers.close()
	return err
}

func (a *Agent) setReady(is bool) {
	a.mu.Lock()
	a.ready = is
	a.mu.Unlock()
}

// events are the events that a file asks for.
func events(c *config.Config) []string {
	list := []string{"cpu"}
	if c.Wall {
		list = append(list, "wall")
	}
	if c.OffCPU {
		list = append(list, "off-cpu")
	}
	return list
}

// start begins to record.
func (a *Agent) start() error {
	c := a.config()
	decider := service.NewDecider(c.Rules, a.names)
	r, err := record.Start(context.Background(), record.Options{
		All: true, Unobserved: true, Hz: c.Rate, Events: events(c), MinSleep: c.MinSleep, Engine: "auto", Version: a.o.Version,
		Log: a.engineSays, Service: a.naming(decider), Progress: a.metrics.progress, Heap: heapOf(c.Limits.Memory),
	})
	if err != nil {
		return fmt.Errorf("record this machine: %w", err)
	}
	a.mu.Lock()
	a.rec, a.over = r, false
	a.mu.Unlock()
	a.limiter.begun(r)
	return nil
}

// engineSays passes on what a recording says. Its first line describes the engine, and comes when all is sampled.
func (a *Agent) engineSays(line string) {
	a.mu.Lock()
	first := a.engine == ""
	if first {
		a.engine = line
	}
	a.mu.Unlock()
	if first {
		line = fmt.Sprintf("sampling at %g Hz; %s", a.config().Rate, line)
	}
	a.o.Log(line)
}

// naming returns the function that a recording asks for the services of processes.
func (a *Agent) naming(d *service.Decider) func(record.Subject) (string, string) {
	return func(who record.Subject) (string, string) {
		p := service.Process{PID: who.PID, Parent: who.Parent, Comm: who.Comm, UID: -1, Kernel: who.Kernel}
		if t := who.Target; t != nil {
			p.Exe, p.Args, p.UID = t.Exe(), t.Cmdline(), t.UID()
		}
		dec := d.Decide(&p)
		a.served.decided(dec)
		return dec.Service, dec.Container
	}
}

// loop ends a part at the end of each span of time, until ctx is done or recording has ended for
// good.
func (a *Agent) loop(ctx context.Context, servers *servers) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	next := a.nextEnd(time.Now())
	for {
		select {
		case <-ctx.Done():
			a.o.Log("stopping: what was sampled is stored and pushed")
			return a.stop()
		case <-a.o.Reload:
			a.reload(servers)
		case <-a.rec.Ended():
			if err := a.again(ctx); err != nil || ctx.Err() != nil {
				return errors.Join(err, a.sinks.close(lastPushes))
			}
		case now := <-tick.C:
			a.limiter.look(now)
			if now.Before(next) && next.Sub(now) < 2*a.o.Part { // a clock that is set back does not delay the end
				continue
			}
			next = a.nextEnd(now)
			if part, err := a.rec.Rotate(nil); err == nil {
				a.take(part)
			}
		}
	}
}

// nextEnd returns when the part ends that is being recorded: at a multiple of its length, so that
// the parts of all hosts are of the same spans of time.
func (a *Agent) nextEnd(now time.Time) time.Time {
	end := now.Truncate(a.o.Part).Add(a.o.Part)
	if end.Sub(now) < time.Second {
		end = end.Add(a.o.Part)
	}
	return end
}

// lastPushes is how long pushing what is left may take at the end. The rest stays in the buffers on
// disk.
const lastPushes = 10 * time.Second

// stop ends recording, and stores and pushes the rest.
func (a *Agent) stop() error {
	return errors.Join(a.endRecording(), a.sinks.close(lastPushes))
}

// endRecording ends the present recording, and takes what is left of it. It does nothing if that has been done, and
// no other one could be begun since.
func (a *Agent) endRecording() error {
	a.mu.Lock()
	over := a.over
	a.over = true
	a.mu.Unlock()
	if over {
		return nil
	}
	last, err := a.rec.Stop()
	if last != nil && last.Profile != nil {
		a.take(last)
	}
	return err
}

// again begins a recording anew that has ended by itself.
func (a *Agent) again(ctx context.Context) error {
	err := a.endRecording()
	if err == nil {
		err = errors.New("the engine ended")
	}
	a.metrics.restarts.Add(1)
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		a.o.Log(fmt.Sprintf("recording ended: %v; it begins anew in %v", err, wait))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if err = a.start(); err == nil {
			return nil
		}
		if errors.Is(err, capture.ErrPermission) {
			return err
		}
	}
}

// anew ends the recording and begins another one, with another rate or other events.
func (a *Agent) anew() error {
	if err := a.endRecording(); err != nil { // which says nothing of the one that begins
		a.o.Log(fmt.Sprintf("recording ended: %v", err))
	}
	a.mu.Lock()
	a.engine = "" // the rate is a part of its description
	a.mu.Unlock()
	return a.start()
}

// reload reads the file again, and keeps the old one if it is wrong.
func (a *Agent) reload(servers *servers) {
	old := a.config()
	conf, err := config.Load(a.o.Path)
	if err == nil {
		err = a.apply(old, conf, servers)
	}
	a.mu.Lock()
	a.refused = ""
	if err != nil {
		a.refused = err.Error()
	}
	a.mu.Unlock()
	if err != nil {
		a.metrics.refused.Add(1)
		if errors.Is(err, errSampling) {
			a.o.Log(fmt.Sprintf("%s was read again, and is in force but for this: %v", a.o.Path, err))
			return
		}
		a.o.Log(fmt.Sprintf("the file is wrong, the one of %s stays in force: %v", a.loaded.Format(time.TimeOnly), err))
		return
	}
	a.o.Log(a.o.Path + " was read again and is in force")
}

// apply puts a file in force. What can fail is done first.
func (a *Agent) apply(old, conf *config.Config, servers *servers) error {
	fresh, err := a.changedSinks(old, conf)
	if err != nil {
		return err
	}
	if err := servers.change(a, old, conf); err != nil {
		return errors.Join(err, fresh.drop(a.sinks))
	}
	if m := conf.Limits.Memory; m > 0 {
		debug.SetMemoryLimit(goMemory(m))
	}
	if fresh != a.sinks {
		// Samples so far belong to the old store and servers.
		if part, err := a.rec.Rotate(nil); err == nil {
			a.take(part)
		}
	}
	before := a.sinks
	a.mu.Lock()
	a.conf, a.loaded, a.sinks = conf, time.Now(), fresh
	a.mu.Unlock()
	before.leave(fresh)
	if old.Rate != conf.Rate || old.MinSleep != conf.MinSleep || !slices.Equal(events(old), events(conf)) || heapOf(old.Limits.Memory) != heapOf(conf.Limits.Memory) {
		if err := a.anew(); err != nil {
			err = fmt.Errorf("%w: %w", errSampling, err)
			if failed := a.sampleAs(old); failed != nil {
				return errors.Join(err, failed)
			}
			return fmt.Errorf("%w; sampling goes on as before", err)
		}
		return nil
	}
	a.rec.Rename(a.naming(service.NewDecider(conf.Rules, a.names)))
	return nil
}

// errSampling says that a file's way of sampling is not possible here.
var errSampling = errors.New("this way of sampling is not possible")

// sampleAs begins to record as an older file says, with everything else of the present one. If that fails, the
// agent's loop goes on trying.
func (a *Agent) sampleAs(old *config.Config) error {
	a.mu.Lock()
	c := *a.conf
	c.Rate, c.MinSleep, c.Wall, c.OffCPU = old.Rate, old.MinSleep, old.Wall, old.OffCPU
	a.conf = &c
	a.mu.Unlock()
	return a.start()
}

// hostname returns the name of this machine, "" if it has none.
func hostname() string {
	h, _ := os.Hostname()
	return h
}
