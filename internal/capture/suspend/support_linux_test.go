package suspend

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/offspring"
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

// compile compiles a program of testdata.
func compile(t testing.TB, name string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc) here")
	}
	bin := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command(cc, "-O1", "-o", bin, filepath.Join("testdata", name+".c"), "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	return bin
}

// program is a running program of a test.
type program struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

// start starts a program and waits for its first line.
func start(t testing.TB, argv ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := offspring.Start(p.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	p.out = bufio.NewReader(out)
	p.line()
	return p
}

func (p *program) pid() int { return p.cmd.Process.Pid }

func (p *program) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%s said nothing: %v", p.cmd.Path, err)
	}
	return line
}

// end closes the program's input and gives what it says then.
func (p *program) end() string {
	p.t.Helper()
	_ = p.in.Close()
	return p.line()
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

func record(t testing.TB, e capture.Engine, sink capture.Sink, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := e.Run(ctx, sink); err != nil {
		t.Fatal(err)
	}
}
