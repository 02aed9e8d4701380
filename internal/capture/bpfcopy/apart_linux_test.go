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
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/offspring"
)

// helperEnv makes the test binary play a part in a process of its own.
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
	if err := offspring.Start(cmd); err != nil {
		return err
	}
	opts := cpuOptions(500, cmd.Process.Pid)
	opts.Children = true
	e, err := Open(opts, Auto)
	if err != nil {
		return err
	}
	defer e.Close()
	// One in a namespace below ours.
	inner := exec.Command(bin)
	inner.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := offspring.Start(inner); err != nil {
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
	r.look = func(*capture.Snapshot) { // until there is enough of all three, and for a second
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
	open(t, cpuOptions(99), Auto).Close() // skips where BPF is not permitted
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
	if err := offspring.Start(cmd); err != nil {
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

// What the program takes at most for a sample, above what it takes to see that a thread is
// no target's. On a slow machine, and on a crowded one where nothing is in the caches, it is
// so many times the latter, for it looks up the thread, its stack's end and room for the
// copy, and so many times what a program takes that only reads as many bytes of the
// same thread, for it writes them too.
const (
	mostPerSample = 3000 // ns
	mostOfMiss    = 8
	mostOfPlain   = 2
)

func TestProgramCost(t *testing.T) {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		t.Skipf("BPF statistics: %v", err)
	}
	defer stats.Close()
	prog := startProg(t, compile(t, spinSource))
	idle := startProg(t, "sleep", "1000")
	for _, v := range variants {
		// The machine may be busy with other things.
		fixture.Attempts(t, 10, func() string {
			// What a run costs that finds no target, at the same time.
			other := open(t, cpuOptions(1900, idle.Process.Pid), v)
			if err := other.timers.Start(); err != nil {
				t.Fatal(err)
			}
			e := open(t, cpuOptions(2000, prog.Process.Pid), v)
			r := newRecorder()
			var plain *plainCopy
			r.look = func(s *capture.Snapshot) {
				if plain == nil {
					plain = startPlainCopy(t, prog.Process.Pid, 2100, s)
				}
			}
			recordUntil(t, e, r, 400) // however seldom the program runs on a busy machine
			runs, ns, err := e.ProgramCost()
			missRuns, missNS, err2 := other.ProgramCost()
			if err := errors.Join(err, err2, e.Close(), other.Close()); err != nil {
				t.Fatal(err)
			}
			if plain == nil {
				return fmt.Sprintf("%v: no sample", v)
			}
			least := plain.end(t)
			if r.samples < 50 || missRuns == 0 {
				return fmt.Sprintf("%v: %d samples, %d runs without a target", v, r.samples, missRuns)
			}
			miss := float64(missNS) / float64(missRuns)
			each := (float64(ns) - miss*float64(runs-uint64(r.samples))) / float64(r.samples)
			t.Logf("%v: %d samples of %d bytes, %d runs, %.0f ns a sample, %.0f ns to read as many, %.0f ns without a target", v, r.samples, r.bytes/r.samples, runs, each, least, miss)
			if most := max(mostPerSample, mostOfMiss*miss+mostOfPlain*least); each > most {
				return fmt.Sprintf("%v: %.0f ns a sample, more than %.0f", v, each, most)
			}
			return ""
		})
	}
}

// plainCopy is a BPF program that reads a piece of a thread's memory now and then.
type plainCopy struct {
	prog  *ebpf.Program
	to    *ebpf.Map
	event int
}

// startPlainCopy has what is in a snapshot's stack read hz times a second of CPU time that
// the thread uses.
func startPlainCopy(t *testing.T, tid int, hz uint64, s *capture.Snapshot) *plainCopy {
	t.Helper()
	to, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: uint32(len(s.Stack)), MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.PerfEvent, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMapValue(asm.R1, to.FD(), 0),
		asm.Mov.Imm(asm.R2, int32(len(s.Stack))),
		asm.LoadImm(asm.R3, int64(s.StackAddr), asm.DWord),
		asm.FnProbeReadUser.Call(),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: 1e9 / hz, Bits: unix.PerfBitDisabled}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		err = errors.Join(unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, prog.FD()), unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	return &plainCopy{prog, to, fd}
}

// end ends it, and gives what it took each time, ns.
func (p *plainCopy) end(t *testing.T) float64 {
	t.Helper()
	st, err := p.prog.Stats()
	if err := errors.Join(err, unix.Close(p.event), p.prog.Close(), p.to.Close()); err != nil {
		t.Fatal(err)
	}
	return float64(st.Runtime) / float64(max(st.RunCount, 1))
}

var _ capture.Sink = (*recorder)(nil)
