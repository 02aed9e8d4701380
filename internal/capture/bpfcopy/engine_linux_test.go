package bpfcopy

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
	"github.com/candid-profiler/candid/internal/fixture"
)

// recorder keeps what an engine has delivered.
type recorder struct {
	byTID    map[uint32]int
	weight   map[uint32]uint64
	flags    map[capture.Flags]int
	notices  []capture.ProcessEvent
	samples  int
	bytes    int
	batches  int
	first    time.Time
	last     uint64
	backward int
	look     func(*capture.Snapshot)
}

func newRecorder() *recorder {
	return &recorder{byTID: map[uint32]int{}, weight: map[uint32]uint64{}, flags: map[capture.Flags]int{}}
}

func (r *recorder) Sample(s *capture.Snapshot) {
	if r.samples == 0 {
		r.first = time.Now()
	}
	if s.Time < r.last {
		r.backward++
	}
	r.last = s.Time
	r.samples++
	r.bytes += len(s.Stack)
	r.byTID[s.TID]++
	r.weight[s.TID] += s.Weight
	r.flags[s.Flags]++
	if r.look != nil {
		r.look(s)
	}
}
func (r *recorder) Notice(n capture.ProcessEvent) { r.notices = append(r.notices, n) }
func (r *recorder) BatchEnd()                     { r.batches++ }

// compile builds a C program for a test.
func compile(t testing.TB, source string) string {
	t.Helper()
	return fixture.C(t, source, "-g", "-fno-omit-frame-pointer", "-lm")
}

// open opens an engine, or skips the test if BPF is not permitted.
func open(t testing.TB, opts capture.Options, v Variant) *Engine {
	t.Helper()
	e, err := Open(opts, v)
	if errors.Is(err, capture.ErrPermission) || errors.Is(err, capture.ErrUnsupported) && v == Exact {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func record(t testing.TB, e *Engine, r *recorder, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := e.Run(ctx, r); err != nil {
		t.Fatal(err)
	}
}

func startProg(t testing.TB, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	favour(cmd.Process.Pid)
	return cmd
}

func cpuOptions(hz float64, pids ...int) capture.Options {
	period, _, _ := capture.ChooseRate(hz)
	return capture.Options{PIDs: pids, Period: period, Events: []capture.Event{{Name: "cpu", Unit: "nanoseconds"}}}
}

const spinSource = `
#include <string.h>
int deep(int n) { volatile char pad[4096]; memset((void*)pad, n, sizeof pad); if (n > 0) return deep(n-1) + pad[7]; for (volatile int i = 0; i < 100000; i++); return pad[3]; }
int main() { for (;;) deep(2); }
`

var variants = []Variant{Exact, Sized}

func TestSpin(t *testing.T) {
	bin := compile(t, spinSource)
	for _, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			prog := startProg(t, bin)
			time.Sleep(50 * time.Millisecond)
			begin := time.Now()
			e := open(t, cpuOptions(1000, prog.Process.Pid), v)
			opened := time.Since(begin)
			r := newRecorder()
			maps, _ := os.ReadFile("/proc/" + itoa(prog.Process.Pid) + "/maps")
			lo, hi := stackRange(t, string(maps))
			holes := 0 // the kernel moves a page now and then, and it is absent meanwhile
			r.look = func(s *capture.Snapshot) {
				sp := s.Regs.SP()
				if s.Regs.PC == 0 || sp < lo || sp >= hi {
					t.Errorf("pc %x, sp %x outside the stack %x-%x", s.Regs.PC, sp, lo, hi)
				}
				if s.StackAddr > sp || s.StackAddr+uint64(len(s.Stack)) != s.StackTop || s.StackTop > hi {
					t.Errorf("a copy of %x+%d, sp %x, top %x", s.StackAddr, len(s.Stack), sp, s.StackTop)
				}
				if s.Flags&capture.StackHoles != 0 {
					holes++
				}
				if s.Flags&^(capture.InKernel|capture.StackHoles) != 0 {
					t.Errorf("flags %x", s.Flags)
				}
			}
			cpu := schedstat(t, prog.Process.Pid, prog.Process.Pid)
			record(t, e, r, time.Second)
			cpu = schedstat(t, prog.Process.Pid, prog.Process.Pid) - cpu
			if late := time.Duration(perfevent.Now() - e.Stats().Ended); late > 20*time.Millisecond {
				fixture.NotPermitted(t, "the kernel's account was read %v after sampling had ended", late)
			}
			runs, ns, _ := e.ProgramCost()
			st := e.Stats()
			if r.samples == 0 {
				t.Fatal("no samples")
			}
			t.Logf("%s: opened in %v, first sample after %v", e.Describe(), opened, r.first.Sub(begin))
			t.Logf("%d samples, %d bytes each, lost %d, %d batches, %d copies of %d ns", r.samples, r.bytes/r.samples, st.Lost, r.batches, runs, ns/max(1, runs))
			got := float64(r.weight[uint32(prog.Process.Pid)])
			t.Logf("weight %.1f ms, the kernel's account %.1f ms", got/1e6, float64(cpu)/1e6)
			if math.Abs(got-float64(cpu)) > 4*math.Sqrt(float64(cpu)*1e6)+5e6 {
				t.Errorf("weight %.1f ms, the kernel's account %.1f ms", got/1e6, float64(cpu)/1e6)
			}
			if r.backward > 0 {
				t.Errorf("%d samples out of order", r.backward)
			}
			if holes > 5 {
				t.Errorf("%d of %d stacks have holes", holes, r.samples)
			}
		})
	}
}
