package native

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// build compiles testdata/walk.c.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	return buildWith(t, "gcc", flags...)
}

func buildWith(t testing.TB, compiler string, flags ...string) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "walk")
	if err := fixture.Compile(fixture.Tool(t, compiler), append([]string{"-g0", "-o", exe, "testdata/walk.c"}, flags...)...); err != nil {
		t.Fatal(err)
	}
	return exe
}

// score counts the walker's results over all instructions of a run.
type score struct {
	steps, right, wrong, none int
	whole                     int // stacks that were right from end to end
	bad                       int // stacks with a wrong frame further out
	guessed                   int // right, but marked as a guess
	falseExact                int // wrong, but marked as exact
	falseDerived              int // wrong, but not marked as a guess
	ends                      [walk.NumEnds]int
	vdso                      int // instructions in the vdso
}

// subject is a traced process with a walker for it.
type subject struct {
	tr     *oracle.Tracer
	p      *target.Process
	native *Stepper
	walker *walk.Walker
	stack  walk.Stack
	snap   capture.Snapshot
	asleep bool // only what the kernel reports of a sleeping thread is used
}

func newSubject(t testing.TB, exe string, args ...string) *subject {
	t.Helper()
	runtime.LockOSThread() // for good: ptrace and Pin belong to the thread
	tr, err := oracle.Start(exe, args...)
	if err != nil {
		t.Skipf("cannot trace a program here: %v", err)
	}
	t.Cleanup(tr.Kill)
	if err := tr.Pin(); err != nil {
		t.Fatal(err)
	}
	return &subject{tr: tr}
}

func (s *subject) open(t testing.TB) {
	t.Helper()
	p, err := target.Open(s.tr.PID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	s.p = p
	if s.native, err = New(p, NewFiles()); err != nil {
		t.Fatal(err)
	}
	s.walker = walk.New(cpu.AMD64, s.native)
	s.walker.Add(s.native)
}

// check compares one walk with the shadow stack.
func (s *subject) check(t testing.TB, sc *score) {
	s.tr.Snapshot(&s.snap, 1<<16)
	if s.asleep {
		s.snap.Regs.Known = 1 << cpu.RSP
	}
	s.p.Memory().Invalidate()
	s.walker.Walk(&s.snap, s.p.Memory(), &s.stack)
	sc.steps++
	if m, _, ok := s.native.Locate(s.stack.Frames[0]); ok && m.Image != nil {
		sc.vdso++
	}
	sc.ends[s.stack.End]++
	truth := s.tr.Callers()
	f := s.stack.Frames
	if len(truth) == 0 {
		if s.tr.Whole() && (len(f) != 1 || s.stack.End != walk.EndComplete) {
			sc.bad++
			if sc.bad < 5 {
				t.Errorf("step %d at %s: %d frames above the first, end %v", s.tr.Steps(), s.where(s.tr.PC()), len(f)-1, s.stack.End)
			}
		}
		return
	}
	if len(f) < 2 {
		sc.none++
		if sc.none < 5 {
			t.Logf("step %d at %s: no caller, %v", s.tr.Steps(), s.where(s.tr.PC()), s.stack.End)
		}
		return
	}
	if f[1].PC != truth[len(truth)-1].RA {
		sc.wrong++
		if f[1].Prov == walk.Exact {
			sc.falseExact++
		}
		if f[1].Prov != walk.Heuristic {
			sc.falseDerived++
		}
		if sc.wrong < 8 {
			t.Logf("step %d at %s: caller %s (%d), truth %s", s.tr.Steps(), s.where(s.tr.PC()), s.where(f[1].PC), f[1].Prov, s.where(truth[len(truth)-1].RA))
		}
		return
	}
	sc.right++
	if f[1].Prov != walk.Exact {
		sc.guessed++
	}
	for i := range truth {
		if i+1 >= len(f) || f[i+1].PC != truth[len(truth)-1-i].RA {
			sc.bad++
			if sc.bad < 5 {
				t.Logf("step %d at %s: frame %d of %d is wrong, end %v at %s", s.tr.Steps(), s.where(s.tr.PC()), i+1, len(truth), s.stack.End, s.where(s.stack.EndPC))
			}
			return
		}
	}
	if s.tr.Whole() && (len(f) != len(truth)+1 || s.stack.End != walk.EndComplete) {
		sc.bad++
		if sc.bad < 5 {
			t.Logf("step %d at %s: %d frames, %d in truth, end %v", s.tr.Steps(), s.where(s.tr.PC()), len(f), len(truth)+1, s.stack.End)
		}
		return
	}
	sc.whole++
}

// where formats an address with its module.
func (s *subject) where(pc uint64) string {
	a, ok := s.native.find(pc)
	if !ok {
		return hex(pc)
	}
	m := s.native.modules[a.module]
	return m.Name() + "+" + hex(pc-m.Bias)
}

func hex(v uint64) string {
	const digits = "0123456789abcdef"
	b := []byte{}
	for ; v > 0 || len(b) == 0; v >>= 4 {
		b = append([]byte{digits[v&15]}, b...)
	}
	return "0x" + string(b)
}

// describesItself reports whether the code is glibc's longjmp, whose table says that its caller is
// the place that it jumps to, from the moment it has read it.
func (s *subject) describesItself() bool {
	a, ok := s.native.find(s.tr.PC())
	if !ok {
		return false
	}
	m := s.native.modules[a.module]
	if m.File == nil || m.File.table == nil {
		return false
	}
	r := m.File.table.Lookup(s.tr.PC() - m.Bias)
	return r != nil && r.RA.How == ehframe.InReg
}

// run steps from the program's first breakpoint to its second.
func (s *subject) run(t testing.TB, limit int) (sc score) {
	s.runInto(t, limit, &sc, func() *score { return &sc })
	return sc
}

// runInto is run, except that each instruction's result is counted in the score that place returns;
// it ends when sc has limit.
func (s *subject) runInto(t testing.TB, limit int, sc *score, place func() *score) {
	for sc.steps < limit {
		if !s.describesItself() {
			s.check(t, place())
		}
		err := s.tr.Step()
		if errors.Is(err, oracle.ErrExited) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.tr.Executed().Bytes[0] == 0xcc {
			break
		}
	}
}

// TestEveryInstructionWithTables checks that with unwind tables there is no wrong caller, at any
// instruction, in any kind of build.
func TestEveryInstructionWithTables(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"O2", []string{"-O2"}},
		{"O0", []string{"-O0"}},
		{"O2 omit frame pointer, lazy plt", []string{"-O2", "-fomit-frame-pointer", "-Wl,-z,lazy", "-fcf-protection=none"}},
		{"O3 no pie, frame pointer", []string{"-O3", "-no-pie", "-fno-omit-frame-pointer"}},
		{"O2 static, stripped", []string{"-O2", "-static", "-s"}},
		{"Os", []string{"-Os"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSubject(t, build(t, c.flags...))
			if err := s.tr.RunToTrap(); err != nil {
				t.Fatal(err)
			}
			s.open(t)
			sc := s.run(t, 100000)
			t.Logf("%+v", sc)
			if sc.steps < 3000 {
				t.Errorf("only %d instructions seen", sc.steps)
			}
			if sc.wrong+sc.none+sc.bad > 0 {
				t.Errorf("%d wrong callers, %d missing, %d wrong further out", sc.wrong, sc.none, sc.bad)
			}
			// Linkers write no tables for the jumps to indirect functions of static programs; that
			// code is read.
			if sc.guessed > 0 && (c.name != "O2 static, stripped" || sc.guessed*100 > sc.steps) {
				t.Errorf("%d callers were not found by tables", sc.guessed)
			}
			if sc.vdso == 0 {
				t.Log("the C library made no use of the vdso")
			}
		})
	}
}

// TestEveryInstructionFromTheFirst steps the dynamic linker and a program's
// start: the stack must be right from end to end, and end where the thread began.
func TestEveryInstructionFromTheFirst(t *testing.T) {
	s := newSubject(t, build(t, "-O2"))
	s.open(t)
	var sc score
	for sc.steps < 30000 {
		s.check(t, &sc)
		if err := s.tr.Step(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%+v", sc)
	if sc.wrong+sc.none+sc.bad > 0 {
		t.Errorf("%d wrong callers, %d missing, %d wrong further out", sc.wrong, sc.none, sc.bad)
	}
}

// TestEveryInstructionWithoutTables measures how good reading the code is. The program's own
// functions have no tables, the C library has.
func TestEveryInstructionWithoutTables(t *testing.T) {
	for _, c := range []struct {
		name     string
		compiler string
		flags    []string
	}{
		{"O2", "gcc", []string{"-O2"}},
		{"O0", "gcc", []string{"-O0"}},
		{"Os", "gcc", []string{"-Os"}},
		{"O3 frame pointer", "gcc", []string{"-O3", "-fno-omit-frame-pointer"}},
		// musl has no tables either.
		{"musl", "musl-gcc", []string{"-O2"}},
		{"musl static, stripped", "musl-gcc", []string{"-O2", "-static", "-s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "Os" || c.name == "musl" {
				fixture.OnlyFull(t, "the other compilations")
			}
			s := newSubject(t, buildWith(t, c.compiler, append(c.flags, "-fno-asynchronous-unwind-tables", "-fno-exceptions")...))
			if err := s.tr.RunToTrap(); err != nil {
				t.Fatal(err)
			}
			s.open(t)
			sc := s.run(t, 100000)
			t.Logf("%+v: callers right %.3f %%, stacks right %.3f %%", sc,
				100*float64(sc.right)/float64(sc.right+sc.wrong+sc.none), 100*float64(sc.whole)/float64(sc.right+sc.wrong+sc.none))
			if sc.steps < 3000 {
				t.Errorf("only %d instructions seen", sc.steps)
			}
			if sc.falseExact > 0 {
				t.Errorf("%d wrong callers were said to be exact", sc.falseExact)
			}
			if total := sc.right + sc.wrong + sc.none; sc.whole*1000 < total*995 {
				t.Errorf("only %d of %d stacks are right", sc.whole, total)
			}
		})
	}
}

// TestEveryInstructionOfFewRegisters steps with only the program counter and the stack pointer, as
// known of a sleeping thread. If the table finds the frame by another register, the code must tell
// its size, and a wrong size must be marked as a guess.
func TestEveryInstructionOfFewRegisters(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"O0", []string{"-O0"}},
		{"O2 frame pointer", []string{"-O2", "-fno-omit-frame-pointer"}},
		{"O2", []string{"-O2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// If symbols are bound lazily, the linker's code aligns its stack.
			s := newSubject(t, build(t, append(c.flags, "-Wl,-z,now")...))
			s.asleep = true
			if err := s.tr.RunToTrap(); err != nil {
				t.Fatal(err)
			}
			s.open(t)
			var sc, own score // own: in the program's functions
			s.runInto(t, 100000, &sc, func() *score {
				if a, ok := s.native.find(s.tr.PC()); ok && s.native.modules[a.module].Name() == "walk" {
					return &own
				}
				return &sc
			})
			t.Logf("its own code %+v", own)
			t.Logf("other code %+v", sc)
			if own.steps < 500 {
				t.Errorf("only %d instructions seen", own.steps)
			}
			if sc.falseDerived+own.falseDerived > 0 {
				t.Errorf("%d wrong callers were not said to be guesses", sc.falseDerived+own.falseDerived)
			}
			if own.whole*100 < own.steps*99 {
				t.Errorf("only %d of %d stacks are right", own.whole, own.steps)
			}
		})
	}
}
