package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/agent/config"
	"github.com/candid-profiler/candid/internal/agent/service"
	"github.com/candid-profiler/candid/internal/store/captures"
	"github.com/candid-profiler/candid/internal/target"
)

// CaptureRequest asks for a recording of one service at a higher rate.
type CaptureRequest struct {
	Service  string        `json:"service"`
	Duration time.Duration `json:"duration"` // ns
	Rate     float64       `json:"rate"`
	Event    string        `json:"event"` // "" is cpu
}

// CaptureResult is a capture that was stored.
type CaptureResult struct {
	Service   string        `json:"service"`
	File      string        `json:"file"`
	Bytes     int64         `json:"bytes"`
	Processes int           `json:"processes"`
	Duration  time.Duration `json:"duration"`
	Rate      float64       `json:"rate"`
}

// capturer makes captures. Each is a candid of its own, so that a fault in it, or its memory, is not
// the agent's.
type capturer struct {
	a                     *Agent
	running               atomic.Int32
	done, failed, refused atomic.Uint64
	mu                    sync.Mutex
	over                  map[excess]time.Duration // for how long it has lasted
	last                  map[excess]time.Time     // when it was last captured
	seen                  map[excess]bool          // in the present part
	ctx                   context.Context          // of all captures
	cancel                context.CancelFunc
	background            sync.WaitGroup
}

// excess is a service that uses more CPU than a threshold.
type excess struct {
	rule    config.Threshold
	service string
}

// errCapture is wrapped by errors that say that a capture is refused.
var errCapture = errors.New("capture refused")

// errBusy is wrapped by those of them that say that there are captures under way.
var errBusy = fmt.Errorf("%w: too many at once", errCapture)

// check returns what is wrong with a request.
func (r *CaptureRequest) check(c config.Capture, dir string) error {
	switch {
	case dir == "":
		return fmt.Errorf("%w: the agent's file has no store: dir to put it in", errCapture)
	case c.Concurrent == 0:
		return fmt.Errorf("%w: the agent's file permits none (capture: concurrent: 0)", errCapture)
	case r.Service == "":
		return fmt.Errorf("%w: name the service: --service NAME; candid agent services lists them", errCapture)
	case !(r.Rate > 0) || r.Rate > c.MaxRate:
		return fmt.Errorf("%w: the rate %g Hz is not between 0 and %g (capture: max_rate)", errCapture, r.Rate, c.MaxRate)
	case r.Duration < time.Second || r.Duration > c.MaxDuration:
		return fmt.Errorf("%w: the duration %s is not between 1s and %s (capture: max_duration)", errCapture, config.Duration(r.Duration), config.Duration(c.MaxDuration))
	case r.Event != "" && !slices.Contains([]string{"cpu", "wall", "off-cpu"}, r.Event):
		return fmt.Errorf("%w: the event %q is none of cpu, wall, off-cpu", errCapture, r.Event)
	}
	return nil
}

// members returns the processes of each service that run now.
func (c *capturer) members() map[string][]int {
	list, err := target.List()
	if err != nil {
		return nil
	}
	d := service.NewDecider(c.a.config().Rules, c.a.names)
	out := map[string][]int{}
	for _, p := range list {
		if p.PID == os.Getpid() {
			continue
		}
		t, err := target.Open(p.PID)
		if err != nil {
			continue // kernel threads, and what ended meanwhile
		}
		dec := d.Decide(&service.Process{PID: p.PID, Exe: t.Exe(), Args: t.Cmdline(), Comm: t.Comm(), UID: t.UID()})
		t.Close()
		out[dec.Service] = append(out[dec.Service], p.PID)
	}
	return out
}

// find returns the processes of a service.
func (c *capturer) find(name string) ([]int, error) {
	all := c.members()
	if pids := all[name]; len(pids) > 0 {
		return pids, nil
	}
	names := slices.Sorted(maps.Keys(all))
	for _, s := range c.a.served.list().Services {
		if s.Service == name {
			return nil, fmt.Errorf("%w: no process of service %q runs now; it was last sampled at %s", errCapture, name, c.a.served.list().To.Format(time.TimeOnly))
		}
	}
	hint := "candid agent services lists them"
	if near := config.Near(name, names); len(near) > 0 {
		hint = "similar names: " + strings.Join(near, ", ")
	}
	return nil, fmt.Errorf("%w: there is no service %q here; %s", errCapture, name, hint)
}

// take makes a capture, until ctx is done at the latest.
func (c *capturer) take(ctx context.Context, r CaptureRequest) (*CaptureResult, error) {
	conf := c.a.config()
	if err := r.check(conf.Capture, conf.Store.Dir); err != nil {
		c.refused.Add(1)
		return nil, err
	}
	if n := c.running.Add(1); int(n) > conf.Capture.Concurrent {
		c.running.Add(-1)
		c.refused.Add(1)
		return nil, fmt.Errorf("%w: %d under way already (capture: concurrent)", errBusy, n-1)
	}
	defer c.running.Add(-1)
	c.background.Add(1)
	defer c.background.Done()
	pids, err := c.find(r.Service)
	if err != nil {
		c.refused.Add(1)
		return nil, err
	}
	res, err := c.record(ctx, r, pids, filepath.Join(conf.Store.Dir, captures.Dir))
	if err != nil {
		c.failed.Add(1)
		c.a.o.Log(fmt.Sprintf("capture of %s: %v", r.Service, err))
		return nil, err
	}
	c.done.Add(1)
	c.a.o.Log(fmt.Sprintf("capture of %s: %d processes at %g Hz for %s in %s", r.Service, len(pids), r.Rate, config.Duration(r.Duration), res.File))
	c.clean()
	return res, nil
}

// patience is how much longer than its duration a capture may take.
const patience = time.Minute

// record runs candid record.
func (c *capturer) record(ctx context.Context, r CaptureRequest, pids []int, dir string) (*CaptureResult, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, captures.Name(r.Service, time.Now()))
	list := make([]string, len(pids))
	for i, p := range pids {
		list[i] = strconv.Itoa(p)
	}
	event := r.Event
	if event == "" {
		event = "cpu"
	}
	run, cancel := context.WithTimeout(ctx, r.Duration+patience)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	cmd := exec.CommandContext(run, exe, "record", "-p", strings.Join(list, ","), "--children", "-d", r.Duration.String(),
		"-F", strconv.FormatFloat(r.Rate, 'g', -1, 64), "-e", event, "-o", file, "--mode", "0640", "-q")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it saves what it has
	cmd.WaitDelay = 20 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &limited{&said, 4096}
	err = cmd.Run()
	var exit *exec.ExitError
	// Code 6: some processes ended before the time had passed; what they did is saved.
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 6) && run.Err() == nil {
		line := strings.TrimSpace(said.String())
		if line == "" {
			line = err.Error()
		}
		return nil, errors.New(strings.TrimPrefix(line, "candid: "))
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	return &CaptureResult{Service: r.Service, File: file, Bytes: info.Size(), Processes: len(pids), Duration: r.Duration, Rate: r.Rate}, nil
}

// limited is a buffer that keeps the beginning of what is written.
type limited struct {
	b    *bytes.Buffer
	most int
}

func (l *limited) Write(p []byte) (int, error) {
	if n := min(len(p), l.most-l.b.Len()); n > 0 {
		l.b.Write(p[:n])
	}
	return len(p), nil
}

// clean deletes captures that are older than the history, and the oldest ones if they take more than
// a quarter of what the store may take. The newest one, which has just been asked for, stays however large it is.
func (c *capturer) clean() {
	conf := c.a.config()
	if conf.Store.Dir == "" {
		return
	}
	dir := filepath.Join(conf.Store.Dir, captures.Dir)
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	sum, newest := int64(0), true
	for _, e := range slices.Backward(list) { // names begin with the time
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(e.Name(), ".jfr.zst") {
			continue
		}
		sum += info.Size()
		old := conf.Store.Keep > 0 && time.Since(info.ModTime()) > conf.Store.Keep
		if old || !newest && conf.Store.Max > 0 && sum > conf.Store.Max/4 {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
		newest = false
	}
}

// exceeded is told how many CPUs a service used in a part, and begins a capture if that has been too
// much for long enough. The name "" ends the part.
func (c *capturer) exceeded(name string, used float64, part time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.over, c.last, c.seen = map[excess]time.Duration{}, map[excess]time.Time{}, map[excess]bool{}
	}
	if name == "" {
		maps.DeleteFunc(c.over, func(e excess, _ time.Duration) bool { return !c.seen[e] })
		clear(c.seen)
		return
	}
	for _, w := range c.a.config().Capture.When {
		if !service.Matches(w.Service, name) || used <= w.CPUs {
			continue
		}
		e := excess{w, name}
		e.rule.Line = 0 // a file that is read again may have moved it
		c.seen[e] = true
		c.over[e] += part
		before, captured := c.last[e]
		if c.over[e] < w.For-time.Second || captured && time.Since(before) < w.Pause || c.ctx.Err() != nil {
			continue
		}
		if len(c.last) > 1<<12 {
			clear(c.last)
		}
		c.last[e], c.over[e] = time.Now(), 0
		c.a.o.Log(fmt.Sprintf("service %s used %.2f CPUs, more than %g for %s: capturing it", name, used, w.CPUs, config.Duration(w.For)))
		c.background.Go(func() {
			_, err := c.take(c.ctx, CaptureRequest{Service: name, Duration: w.Duration, Rate: w.Rate})
			if errors.Is(err, errCapture) {
				c.a.o.Log(err.Error())
			}
			if errors.Is(err, errBusy) {
				c.later(e)
			}
		})
	}
}

// later captures a service, if it still uses too much, at the end of the next part.
func (c *capturer) later(e excess) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, e)
	c.over[e] = e.rule.For
}

// end ends the captures that are under way; what they have is saved.
func (c *capturer) end() {
	c.cancel()
	c.background.Wait()
}
