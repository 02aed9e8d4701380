package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/agent"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/store"
)

// runningAgent is candid agent run as a process of its own.
type runningAgent struct {
	t    *testing.T
	cmd  *exec.Cmd
	dir  string
	file string
	log  *agentLog
	as   []string // the command that begins it as another user
}

// agentLog gathers what an agent says.
type agentLog struct{ path string }

func (l *agentLog) String() string {
	b, _ := os.ReadFile(l.path)
	return string(b)
}

// agentFile returns the text of a file for an agent in a directory.
func agentFile(dir, more string) string {
	return fmt.Sprintf("store: {dir: %s/store, keep: 7d, min_free: 0}\nsocket: %s/agent.sock\n%s", dir, dir, more)
}

// startAgent starts an agent and waits until it samples.
func startAgent(t *testing.T, dir, more string) *runningAgent {
	t.Helper()
	a := &runningAgent{t: t, dir: dir, file: filepath.Join(dir, "agent.yaml"), log: &agentLog{filepath.Join(dir, "log")}}
	a.write(agentFile(dir, more))
	a.start()
	return a
}

func (a *runningAgent) write(text string) {
	a.t.Helper()
	if err := os.WriteFile(a.file, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *runningAgent) start() {
	a.t.Helper()
	words := append(slices.Clone(a.as), binary, "agent", "run", "--config", a.file)
	a.cmd = exec.Command(words[0], words[1:]...)
	log, err := os.OpenFile(a.log.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		a.t.Fatal(err)
	}
	defer log.Close()
	a.cmd.Stderr = log
	before := strings.Count(a.log.String(), "sampling at")
	if err := fixture.Spawn(a.cmd); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = a.cmd.Process.Kill(); _ = a.cmd.Wait() })
	for deadline := time.Now().Add(time.Minute); strings.Count(a.log.String(), "sampling at") == before; time.Sleep(20 * time.Millisecond) {
		if said := a.log.String(); strings.Contains(said, "ot permitted") {
			a.t.Skipf("recording is not possible here: %s", said)
		}
		if time.Now().After(deadline) {
			a.t.Fatalf("the agent does not sample: %s", a.log)
		}
	}
}

// ask runs candid agent with these arguments.
func (a *runningAgent) ask(args ...string) result {
	a.t.Helper()
	return candid(a.t, append(append([]string{"agent"}, args...), "--socket", filepath.Join(a.dir, "agent.sock"))...)
}

// says waits for a line of the agent.
func (a *runningAgent) says(text string) {
	a.t.Helper()
	a.saysWithin(time.Minute, text)
}

func (a *runningAgent) saysWithin(wait time.Duration, text string) {
	a.t.Helper()
	for deadline := time.Now().Add(wait); !strings.Contains(a.log.String(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatalf("the agent does not say %q: %s", text, a.log)
		}
	}
}

// end ends the agent by SIGTERM.
func (a *runningAgent) end() {
	a.t.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		a.t.Fatal(err)
	}
	if err := a.cmd.Wait(); err != nil {
		a.t.Fatalf("the agent ends with %v: %s", err, a.log)
	}
}

func (a *runningAgent) status() agent.Status {
	a.t.Helper()
	r := a.ask("status", "--json")
	var s agent.Status
	if err := json.Unmarshal([]byte(r.out), &s); err != nil || r.code != exitOK {
		a.t.Fatalf("status: exit code %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	return s
}

// history returns what a service has in the agent's store.
func (a *runningAgent) history(service string) *profile.Profile {
	a.t.Helper()
	r, err := store.Open(filepath.Join(a.dir, "store"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer r.Close()
	p, err := r.Profile(store.Query{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), Service: service})
	if err != nil {
		a.t.Fatal(err)
	}
	if d := r.Damage(); len(d) > 0 {
		a.t.Errorf("the store is damaged: %v", d)
	}
	return p
}

// shop starts a Java program that rules take for the service shop-eu.
func shop(t *testing.T) *exec.Cmd {
	t.Helper()
	classes := fixture.Classes(t, 21, filepath.Join("..", "..", "workloads", "Steady.java"))
	c := exec.Command(fixture.JDKTool(t, 21, "java"), "-Dapp=eu", "-Xmx64m", "-cp", classes, "Steady", "600", "20")
	return spawned(t, c)
}

func spawned(t *testing.T, c *exec.Cmd) *exec.Cmd {
	t.Helper()
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c
}

const shopRule = "services:\n  - {match: {exe: java, cmdline: '-Dapp=(\\S+)'}, name: 'shop-$1'}\n"

// TestAgent runs an agent beside a Java program, a native one and many that begin and end at once.
func TestAgent(t *testing.T) {
	a := startAgent(t, t.TempDir(), shopRule+"listen: 127.0.0.1:0\nrate: 99\n")
	java := shop(t)
	spawned(t, exec.Command("sh", "-c", "while :; do :; done"))
	spawned(t, exec.Command("bash", "-c", "while :; do for i in 1 2 3 4 5 6 7 8; do /bin/true; done; sleep 0.2; done"))
	works(t, java.Process.Pid, 2*time.Second)

	// A file that is wrong is not put in force.
	a.write(agentFile(a.dir, "rats: 5\n"))
	if err := a.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	a.says(`unknown key "rats"`)
	if s := a.status(); !strings.Contains(s.Refused, "rats") || s.RateAsked != 99 || s.Samples == 0 || s.Lost != 0 || !s.Ready {
		t.Errorf("status %+v", s)
	}
	a.write(agentFile(a.dir, shopRule+"rate: 49\nlabels: {env: test}\n"))
	if err := a.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	a.says("was read again and is in force")
	if s := a.status(); s.Refused != "" || s.RateAsked != 49 {
		t.Errorf("status %+v", s)
	}
	works(t, java.Process.Pid, time.Second)

	r := a.ask("capture", "--service", "shop-eu", "-d", "1s", "-F", "499", "--json")
	var c agent.CaptureResult
	if err := json.Unmarshal([]byte(r.out), &c); err != nil {
		t.Fatalf("capture: %v, %s%s", err, r.out, r.err)
	}
	if top := ok(t, "report", c.File); !strings.Contains(top.out, "Steady") || c.Processes != 1 || filepath.Dir(c.File) != filepath.Join(a.dir, "store", "captures") {
		t.Errorf("captured %+v:\n%s", c, top.out)
	}
	a.ask("capture", "--service", "shop-us", "-d", "1s").refused(t, exitFailed, "no service", "shop-us", "shop-eu")
	a.ask("capture", "--service", "shop-eu", "-d", "5m").refused(t, exitFailed, "5m", "max_duration")
	a.ask("capture", "--service", "shop-eu", "-d", "1s", "-F", "5000").refused(t, exitFailed, "5000", "max_rate")

	a.end()
	if s := a.log.String(); !strings.Contains(s, "stored and pushed") || strings.Contains(s, "fault") {
		t.Errorf("the agent says:\n%s", s)
	}
	p := a.history("shop-eu")
	seen := fmt.Sprint(p.Funcs)
	if p.SampleCount() < 50 || !strings.Contains(seen, "Steady") {
		t.Errorf("%d samples of the service", p.SampleCount())
	}
	for _, other := range a.history("java").Processes {
		if other.PID == java.Process.Pid {
			t.Errorf("samples of process %d are not the service's", other.PID)
		}
	}
	if p := a.history("true"); p.SampleCount() == 0 {
		t.Log("no process that ended at once was sampled")
	}
	if q := p.Quality(); float64(q.Complete+q.Stitched) < 0.9*float64(q.Samples) {
		t.Errorf("of %d stacks %d are complete", q.Samples, q.Complete)
	}
	candid(t, "agent", "status", "--socket", filepath.Join(a.dir, "agent.sock")).refused(t, exitFailed, "no agent answers")
}

// The store of an agent that was killed is not damaged, and another agent goes on with it. Two agents
// cannot use one store.
func TestAgentKilled(t *testing.T) {
	a := startAgent(t, t.TempDir(), "")
	second := candid(t, "agent", "run", "--config", a.file)
	second.refused(t, exitFailed, "another process", "store")
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.cmd.Wait()
	a.start()
	spin := spawned(t, exec.Command("sh", "-c", "while :; do :; done"))
	works(t, spin.Process.Pid, time.Second)
	a.end()
	if p := a.history(""); p.SampleCount() == 0 {
		t.Error("nothing is stored")
	}
}

// A file says where it is wrong, and an agent does not start with it.
func TestAgentCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte(agentFile("/x", "rate: 29\nlisten: 0.0.0.0:80\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	candid(t, "agent", "check", "--config", file).refused(t, exitUsage, "line 4", "0.0.0.0:80", "127.0.0.1")
	candid(t, "agent", "run", "--config", file).refused(t, exitUsage, "line 4", "0.0.0.0:80")
	candid(t, "agent", "run", "--config", "/no/such/file").refused(t, exitUsage, "/no/such/file", "--config")
	if err := os.WriteFile(file, []byte(agentFile("/x", "rate: 29\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := ok(t, "agent", "check", "--config", file); !strings.Contains(r.out, "29 times") || !strings.Contains(r.out, "/x/agent.sock") {
		t.Error(r.out)
	}
	candid(t, "agent", "capture", "--socket", "/no/such").refused(t, exitUsage, "--service")
}
