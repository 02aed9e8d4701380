package bpfcopy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
)

// helperEnv makes the test binary play a role in a process of its own.
const helperEnv = "CANDID_TEST_PART"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "namespace":
		err = recordInNamespace(os.Args[1])
	case "forever":
		err = recordForever()
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// recordInNamespace runs as the first process of a pid namespace: it starts the
// program, samples it with its children, and prints what it saw.
func recordInNamespace(bin string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", "read go; "+bin+" & "+bin+" & wait")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := fixture.Spawn(cmd); err != nil {
		return err
	}
	opts := cpuOptions(500, cmd.Process.Pid)
	opts.Children = true
	e, err := Open(opts, Auto)
	if err != nil {
		return err
	}
	defer e.Close()
	// A program in a namespace below ours.
	inner := exec.Command(bin)
	inner.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := fixture.Spawn(inner); err != nil {
		return err
	}
	if err := e.AddPID(inner.Process.Pid); err != nil {
		return err
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := newRecorder()
	r.look = func(*capture.Snapshot) { // until there are enough samples of all three, and for a second
		enough := 0
		for _, n := range r.byTID {
			if n > 10 {
				enough++
			}
		}
		if enough >= 3 && time.Since(r.first) > time.Second {
			cancel()
		}
	}
	if err := e.Run(ctx, r); err != nil {
		return err
	}
	for tid, n := range r.byTID {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", tid))
		fmt.Printf("tid %d samples %d comm %s\n", tid, n, strings.TrimSpace(string(comm)))
	}
	fmt.Println("inner", inner.Process.Pid, r.byTID[uint32(inner.Process.Pid)])
	return nil
}

func TestPIDNamespace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making a pid namespace needs root")
	}
	bin := compile(t, `int main() { for (volatile long i = 0; ; i++); }`)
	open(t, cpuOptions(99), Auto).Close() // skips if BPF is not permitted
	cmd := exec.Command("/proc/self/exe", bin)
	cmd.Env = append(os.Environ(), helperEnv+"=namespace")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	progs := 0
	for line := range strings.Lines(string(out)) {
		var tid, n int
		var comm string
		if _, err := fmt.Sscanf(line, "tid %d samples %d comm %s", &tid, &n, &comm); err == nil {
			if tid < 2 || tid > 100 {
				t.Errorf("thread %d: that is no number of this namespace", tid)
			}
			if comm == "prog" && n > 10 {
				progs++
			}
		}
		var pid int
		if _, err := fmt.Sscanf(line, "inner %d %d", &pid, &n); err == nil && n < 10 {
			t.Errorf("the process in a namespace below has %d samples", n)
		}
	}
	if progs != 3 {
		t.Errorf("%d programs were sampled, not two children and one in a namespace below", progs)
	}
}

// recordForever samples itself until it is killed.
func recordForever() error {
	e, err := Open(cpuOptions(99, os.Getpid()), Auto)
	if err != nil {
		return err
	}
	id := func(info *ebpf.ProgramInfo, err error) ebpf.ProgramID {
		if err != nil {
			return 0
		}
		n, _ := info.ID()
		return n
	}
	fmt.Println(id(e.progs.sample.Info()), id(e.progs.coll.Programs["on_fork"].Info()))
	return e.Run(context.Background(), newRecorder())
}

func TestKilledProfilerLeavesNothing(t *testing.T) {
	open(t, cpuOptions(99), Auto).Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), helperEnv+"=forever")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	var ids [2]uint32
	if _, err := fmt.Sscan(line, &ids[0], &ids[1]); err != nil || ids[0] == 0 || ids[1] == 0 {
		t.Fatalf("the profiler said %q, %v", line, err)
	}
	there := func(id uint32) bool {
		p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
		if err == nil {
			p.Close()
		}
		return !errors.Is(err, os.ErrNotExist)
	}
	for _, id := range ids {
		if !there(id) {
			t.Fatalf("program %d is not there while the profiler runs", id)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	deadline := time.Now().Add(time.Minute)
	for _, id := range ids {
		for there(id) {
			if time.Now().After(deadline) {
				t.Fatalf("program %d outlived the profiler", id)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// TestProgramCost checks that the programs account for each copy of a target, and for nothing else;
// the benchmark measures how long a copy takes.
func TestProgramCost(t *testing.T) {
	prog := startProg(t, compile(t, spinSource))
	idle := startProg(t, "sleep", "1000")
	for _, v := range variants {
		other := open(t, cpuOptions(1900, idle.Process.Pid), v)
		if err := other.timers.Start(); err != nil {
			t.Fatal(err)
		}
		e := open(t, cpuOptions(2000, prog.Process.Pid), v)
		r := newRecorder()
		recordUntil(t, e, r, 100)
		copies, ns, err := e.ProgramCost()
		none, noneNS, err2 := other.ProgramCost()
		if err := errors.Join(err, err2, e.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: %d samples, %d copies in %d ns", v, r.samples, copies, ns)
		// A sample may be accounted for after it can be read.
		if copies+1 < uint64(r.samples) || ns < copies {
			t.Errorf("%v: %d samples are told as %d copies in %d ns", v, r.samples, copies, ns)
		}
		if none != 0 || noneNS != 0 {
			t.Errorf("%v: beside a target that sleeps %d copies in %d ns", v, none, noneNS)
		}
	}
}

var _ capture.Sink = (*recorder)(nil)
