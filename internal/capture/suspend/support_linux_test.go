package suspend

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/priority"
)

// counter adds up what the engine delivers.
type counter struct {
	samples int
	weight  map[uint32]uint64
	kinds   map[capture.ProcessEventKind]int
	look    func(*capture.Snapshot)
}

func newCounter() *counter {
	return &counter{weight: map[uint32]uint64{}, kinds: map[capture.ProcessEventKind]int{}}
}

func (c *counter) Sample(s *capture.Snapshot) {
	c.samples++
	c.weight[s.TID] += s.Weight
	if c.look != nil {
		c.look(s)
	}
}
func (c *counter) Notice(n capture.ProcessEvent) { c.kinds[n.Kind]++ }
func (c *counter) BatchEnd()                     {}

// program is a running program in a test.
type program struct{ *fixture.Program }

// compile compiles a program in testdata.
func compile(t testing.TB, name string) string {
	t.Helper()
	return fixture.C(t, filepath.Join("testdata", name+".c"))
}

// start starts a program and waits for its first line.
func start(t testing.TB, argv ...string) *program {
	t.Helper()
	p := &program{fixture.Start(t, exec.Command(argv[0], argv[1:]...))}
	p.Line()
	return p
}

func (p *program) pid() int { return p.PID() }

// end closes the program's input and returns what it prints then.
func (p *program) end() string {
	p.CloseInput()
	return p.Line()
}

func options(hz float64, pids ...int) capture.Options {
	period, _, _ := capture.ChooseRate(hz)
	return capture.Options{PIDs: pids, Period: period, Events: []capture.Event{{Name: "cpu", Unit: "nanoseconds"}}}
}

func open(t testing.TB, opts capture.Options) *Engine {
	t.Helper()
	e, err := Open(opts, "")
	if errors.Is(err, capture.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// record runs the engine for a while, as candid does: in a crowd at a better nice level than the
// program, which has already been started.
func record(t testing.TB, e capture.Engine, sink capture.Sink, d time.Duration) {
	t.Helper()
	defer priority.Keep(func(priority.Report) {})()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := e.Run(ctx, sink); err != nil {
		t.Fatal(err)
	}
}

// heldBack returns why the engine cannot have sampled a program as it should, "" if it could: the
// machine is crowded and, by the engine's own report, its sampling threads got no CPU in a tenth of
// their periods. A sampling thread that has no CPU when a sample is due cannot stop a thread that
// has one. late is what the engine had reported before.
func heldBack(e *Engine, late uint64, long time.Duration) string {
	late = e.Stats().Throttled - late
	periods := uint64(len(e.list)) * uint64(long/e.opts.Period)
	threads, cpus, err := priority.Runnable()
	if err != nil || threads < 8*cpus || late < periods/10 {
		return ""
	}
	return fmt.Sprintf("%d threads want %d CPUs, and the engine got none in %d of %d periods", threads, cpus, late, periods)
}

// attempts is fixture.Attempts for what the engine delivers if it is not held back: a wrong result
// passes if the engine was held back three times.
func attempts(t testing.TB, most int, measure func() (wrong, held string)) {
	t.Helper()
	times := 0
	fixture.Attempts(t, most, func() string {
		wrong, held := measure()
		if wrong == "" || held == "" {
			return wrong
		}
		if times++; times == 3 {
			t.Logf("%s; but %s", wrong, held)
			return ""
		}
		return wrong
	})
}

// lateness measures how long a thread of this process that wants a CPU does not get one, until late
// is called.
func lateness() (late func() time.Duration) {
	end, sum := make(chan bool), make(chan time.Duration)
	go func() {
		var all time.Duration
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-end:
				sum <- all
				return
			case <-time.After(time.Millisecond):
				all += max(time.Since(last)-5*time.Millisecond, 0)
			}
		}
	}()
	return sync.OnceValue(func() time.Duration { end <- true; return <-sum })
}
