package nativeimage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// script writes a program for the Closure compiler to compile.
func script(t testing.TB, functions int) string {
	t.Helper()
	var b strings.Builder
	for i := range functions {
		fmt.Fprintf(&b, "function f%d(a, b) { var list = []; for (var i = 0; i < a.length; i++) { if (a[i] > b) { list.push({key: a[i], name: 'n' + i}); } else { list = list.concat(f%d(b, i)); } } return list.filter(function(x) { return x.key !== %d; }); }\n", i, max(i-1, 0), i)
	}
	path := filepath.Join(t.TempDir(), "script.js")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// compiler starts the Closure compiler and waits until its threads work.
func compiler(t testing.TB, image string) *fixture.Program {
	t.Helper()
	return fixture.Start(t, exec.Command(fixture.Image(t, image), "-O", "ADVANCED", "-W", "QUIET", "--js", script(t, 20000), "--js_output_file", os.DevNull))
}

// busiest returns the thread of a process that has run most.
func busiest(t testing.TB, pid int) int {
	t.Helper()
	var best int
	for begun := time.Now(); time.Since(begun) < 30*time.Second; time.Sleep(20 * time.Millisecond) {
		most := 0
		dirs, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*")
		for _, dir := range dirs {
			b, _ := os.ReadFile(dir + "/schedstat")
			first, _, _ := strings.Cut(string(b), " ")
			n, _ := strconv.Atoi(first)
			if tid, err := strconv.Atoi(filepath.Base(dir)); err == nil && n > most && tid != pid {
				best, most = tid, n
			}
		}
		if most > int(200*time.Millisecond) {
			return best
		}
	}
	fixture.NotPermitted(t, "the program's threads did not run for 30 s")
	return 0
}

// score counts the walker's results.
type score struct{ steps, right, wrong, exact, derived, heuristic, falseExact, falseDerived, none int }

// TestOracle steps the Closure compiler and compares the caller that the walker finds at each
// instruction with the truth: no caller that is called exact may be wrong.
func TestOracle(t *testing.T) {
	steps := 6000
	if fixture.Full(t) {
		steps = 100000
	}
	if n, _ := strconv.Atoi(os.Getenv("ORACLE")); n > 0 {
		steps = n
	}
	sc := stepped(t, steps, func(w *walk.Walker, vm *VM, code *native.Stepper) {
		w.Add(vm)
		w.Add(code)
	})
	t.Logf("%+v", sc)
	if sc.falseExact > 0 {
		t.Errorf("%d wrong callers were said to be exact", sc.falseExact)
	}
	if sc.falseDerived*1000 > sc.steps {
		t.Errorf("%d of %d callers were wrong and not said to be guesses", sc.falseDerived, sc.steps)
	}
	if sc.right*1000 < sc.steps*995 {
		t.Errorf("only %d of %d callers are right", sc.right, sc.steps)
	}
}

// TestOracleWithoutTables measures how often callers are right in an image whose tables are not
// known. All of them are guesses, and must be called so.
func TestOracleWithoutTables(t *testing.T) {
	steps := 3000
	if fixture.Full(t) {
		steps = 50000
	}
	sc := stepped(t, steps, func(w *walk.Walker, vm *VM, code *native.Stepper) {
		g := &Guesser{native: code}
		for i := range vm.images {
			g.add(vm.images[i].code)
		}
		w.Add(g)
		w.Add(code)
	})
	t.Logf("%+v: %.2f %% are right", sc, 100*float64(sc.right)/float64(max(sc.steps, 1)))
	if sc.falseExact+sc.falseDerived > 0 {
		t.Errorf("%d wrong callers were not said to be guesses", sc.falseExact+sc.falseDerived)
	}
	if sc.right*100 < sc.steps*95 {
		t.Errorf("only %d of %d callers are right", sc.right, sc.steps)
	}
}

// stepped steps the Closure compiler and compares the caller that a walker finds at each
// instruction with the truth.
func stepped(t *testing.T, steps int, steppers func(*walk.Walker, *VM, *native.Stepper)) score {
	runtime.LockOSThread()
	p := compiler(t, "image25")
	tr, err := oracle.Attach(busiest(t, p.PID()))
	if err != nil {
		t.Skipf("cannot trace a program here: %v", err)
	}
	defer tr.Detach()
	if err := tr.Pin(); err != nil {
		t.Fatal(err)
	}
	tp, err := target.Open(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tp.Close() })
	code, err := native.New(tp, native.NewFiles())
	if err != nil {
		t.Fatal(err)
	}
	vm, err := new(Finder).Open(tp, code)
	if err != nil {
		t.Fatal(err)
	}
	w := walk.New(cpu.AMD64, code)
	steppers(w, vm, code)
	var (
		sc    score
		snap  capture.Snapshot
		stack walk.Stack
	)
	const run = 1000 // instructions in one place
	for sc.steps < steps {
		if err := tr.Step(); err != nil {
			if errors.Is(err, oracle.ErrExited) {
				break
			}
			if !errors.Is(err, oracle.ErrBlocked) {
				t.Fatal(err)
			}
		}
		truth, ok := tr.Caller()
		if ok {
			tr.Snapshot(&snap, 1<<16)
			tp.Memory().Invalidate()
			w.Walk(&snap, tp.Memory(), &stack)
			sc.count(t, vm, &stack, truth.RA, tr.PC())
		}
		if tr.Steps()%run == 0 {
			if err := tr.Continue(3 * time.Millisecond); err != nil && !errors.Is(err, oracle.ErrBlocked) {
				break
			}
		}
		if tr.Steps() > uint64(4*steps)+run {
			break
		}
	}
	if sc.steps < steps/2 {
		t.Logf("only %d instructions with a known caller were seen", sc.steps)
	}
	return sc
}

// count compares the second frame of a stack with the truth.
func (sc *score) count(t *testing.T, vm *VM, stack *walk.Stack, truth, pc uint64) {
	sc.steps++
	if len(stack.Frames) < 2 {
		sc.none++
		if sc.none < 5 {
			t.Logf("at %#x: no caller, %v", pc, stack.End)
		}
		return
	}
	f := stack.Frames[1]
	switch f.Prov {
	case walk.Exact:
		sc.exact++
	case walk.Derived:
		sc.derived++
	default:
		sc.heuristic++
	}
	if f.PC == truth {
		sc.right++
		return
	}
	sc.wrong++
	if sc.wrong < 8 {
		t.Logf("at %#x (an image's code: %v): caller %#x (%d), truth %#x", pc, vm.Owns(pc), f.PC, f.Prov, truth)
	}
	switch f.Prov {
	case walk.Exact:
		sc.falseExact++
	case walk.Derived:
		sc.falseDerived++
	}
}
