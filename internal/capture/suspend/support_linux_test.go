package suspend

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
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
	kinds   map[capture.NoticeKind]int
	look    func(*capture.Snapshot)
}

func newCounter() *counter {
	return &counter{weight: map[uint32]uint64{}, kinds: map[capture.NoticeKind]int{}}
}

func (c *counter) Sample(s *capture.Snapshot) {
	c.samples++
	c.weight[s.TID] += s.Weight
	if c.look != nil {
		c.look(s)
	}
}
func (c *counter) Notice(n capture.Notice) { c.kinds[n.Kind]++ }
func (c *counter) BatchEnd()               {}

// program is a running program of a test.
type program struct{ *fixture.Program }

// compile compiles a program of testdata.
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

// end closes the program's input and gives what it says then.
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

// record runs the engine for a while, as candid does: in a crowd at a better nice
// level than the program, which has been started already.
func record(t testing.TB, e capture.Engine, sink capture.Sink, d time.Duration) {
	t.Helper()
	defer priority.Keep(func(priority.Told) {})()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := e.Run(ctx, sink); err != nil {
		t.Fatal(err)
	}
}
