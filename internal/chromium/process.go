package chromium

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// process is a running Chromium, driven over a pair of pipes: each message is JSON and
// ends with a zero byte.
type process struct {
	cmd      *exec.Cmd
	in, out  *os.File
	dir      string // its home directory
	messages chan message
	next     atomic.Int64
	failed   bool // it did not answer
}

// shared holds the browsers in which tests take turns.
var shared struct {
	sync.Mutex
	on   bool       // Run runs the tests
	free []*process // browsers that no test uses
}

// Run runs a package's tests with few browsers for all of them and returns the exit code. TestMain
// calls it.
func Run(m interface{ Run() int }) int {
	shared.on = true
	code := m.Run()
	for _, p := range shared.free {
		p.end()
	}
	return code
}

// browsers returns the names of the programs that can be used, the best first. The headless shell
// has the same engine but no windows, which take more than half of the time of tests. A full run
// uses the browser that people have.
func browsers(full bool) []string {
	whole := []string{"chromium", "chromium-browser", "google-chrome"}
	shell := []string{"chromium-headless-shell", "chrome-headless-shell"}
	if full {
		return append(whole, shell...)
	}
	return append(shell, whole...)
}

// take returns a browser that no other test uses, because only one of a browser's pages has the
// focus, and the function that releases it.
func take(t fixture.TB) (*process, func()) {
	t.Helper()
	path := fixture.Tool(t, browsers(fixture.Full(t))...)
	shared.Lock()
	defer shared.Unlock()
	if last := len(shared.free) - 1; last >= 0 {
		p := shared.free[last]
		shared.free = shared.free[:last]
		return p, p.release
	}
	p, err := start(path)
	if err != nil {
		t.Fatal(err)
	}
	return p, p.release
}

// release puts a browser back, if it still answers and there are more tests.
func (p *process) release() {
	shared.Lock()
	keep := shared.on && !p.failed
	if keep {
		shared.free = append(shared.free, p)
	}
	shared.Unlock()
	if !keep {
		p.end()
	}
}

func start(path string) (*process, error) {
	toBrowser, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, fromBrowser, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// This is not the test's own directory: processes of the browser may write into it for a moment
	// after the browser has ended, so it might not be empty when the test removes it.
	dir, err := os.MkdirTemp("", "candid-chromium-*")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+filepath.Join(dir, "user"), "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir, "TZ=UTC")
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // file descriptors 3 and 4
	if err := fixture.Spawn(cmd); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	toBrowser.Close()
	fromBrowser.Close()
	p := &process{cmd: cmd, in: in, out: out, dir: dir, messages: make(chan message, 1024)}
	go func() {
		defer close(p.messages)
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			raw, err := r.ReadBytes(0)
			if err != nil {
				return
			}
			var m message
			if json.Unmarshal(raw[:len(raw)-1], &m) == nil {
				p.messages <- m
			}
		}
	}()
	return p, nil
}

// send sends a command and returns the ID that its answer will have.
func (p *process) send(method, session string, params any) (int64, error) {
	id := p.next.Add(1)
	m := map[string]any{"id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if session != "" {
		m["sessionId"] = session
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return 0, err
	}
	_, err = p.in.Write(append(raw, 0))
	return id, err
}

// dispose closes a page and everything in its profile, and waits until that is done.
func (p *process) dispose(context string) {
	id, err := p.send("Target.disposeBrowserContext", "", map[string]any{"browserContextId": context})
	late := time.After(Patience)
	for err == nil {
		select {
		case m, ok := <-p.messages:
			if !ok {
				err = os.ErrClosed
			} else if m.ID == id {
				return
			}
		case <-late:
			err = os.ErrDeadlineExceeded
		}
	}
	p.failed = true
}

// end ends the browser and removes the files that it has written.
func (p *process) end() {
	p.in.Close() // the browser ends when its pipe is closed
	done := make(chan struct{})
	go func() {
		for range p.messages {
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
	}
	_ = p.cmd.Wait()
	p.out.Close()
	for end := time.Now().Add(Patience); os.RemoveAll(p.dir) != nil && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
}
