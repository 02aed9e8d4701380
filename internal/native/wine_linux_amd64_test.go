package native

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/wine"
)

// windowsSubject starts a program in Wine that waits for a line before it works, and steps its thread
// up to its first breakpoint.
func windowsSubject(t *testing.T, program string) (*subject, *wine.Process) {
	t.Helper()
	target := fixture.Start(t, fixture.Wine(t, program))
	target.Await("ready")
	runtime.LockOSThread()
	tr, err := oracle.Attach(target.PID())
	if err != nil {
		t.Skipf("cannot trace a program here: %v", err)
	}
	t.Cleanup(func() { tr.Kill() })
	tr.Patience = 20 * time.Second
	if err := tr.Pin(); err != nil {
		t.Fatal(err)
	}
	s := &subject{tr: tr}
	s.open(t)
	w, err := wine.Open(s.p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	if err := tr.RunToTrap(); err != nil {
		t.Fatal(err)
	}
	return s, w
}

// windowsScore counts the walker's results.
type windowsScore struct {
	steps, right, wrong, short, incomplete, guessed int
	moved, half                                     int            // the system call will return to another place; half: that is being written
	images                                          map[string]int // instructions of each module
	dispatched, between                             int            // instructions of Wine's dispatcher from which the call was found, and on its own stack
}

// compareWindows compares one walk with the shadow stack, which knows the calls since the breakpoint.
// A system call is different: it takes its return address off the stack, and Wine continues in the
// code that made it, a few bytes before.
func (s *subject) compareWindows(t *testing.T, w *wine.Process, sc *windowsScore, stub *uint64) {
	s.tr.Snapshot(&s.snap, 1<<18)
	regs := s.tr.Regs()
	f := capture.Followed{
		Load:     func(b []byte, addr uint64) bool { return s.tr.Memory().Bytes(addr, b) },
		Register: func(n uint32) (uint64, bool) { return regs.R[n], n < 16 },
		Thread:   s.tr.ThreadPointer(), SP: s.tr.SP(), Most: 1 << 20,
	}
	f.Go(w.Follow())
	s.snap.Regions = f.Regions
	s.p.Memory().Invalidate()
	s.walker.Walk(&s.snap, codeOnly{s}, &s.stack)
	sc.steps++
	sc.images[s.moduleOf(s.tr.PC())]++
	frames := s.stack.Frames
	if ex := s.tr.Executed(); ex.Call && s.moduleOf(s.tr.PC()) == wineLibrary && strings.HasSuffix(s.moduleOf(ex.PC), ".dll") {
		*stub, _ = s.tr.Memory().Word(s.tr.SP())
	}
	truth := s.tr.Callers()
	at := 1
	moved := false
	defer func() {
		if moved {
			return
		}
		if s.stack.End != walk.EndComplete {
			if sc.incomplete++; sc.incomplete < 6 {
				t.Logf("step %d at %s: %v at %s after %d frames", s.tr.Steps(), s.where(s.tr.PC()), s.stack.End, s.where(s.stack.EndPC), len(frames))
			}
		}
		if s.stack.Worst == walk.Heuristic {
			if sc.guessed++; sc.guessed < 6 {
				t.Logf("step %d at %s: a guess", s.tr.Steps(), s.where(s.tr.PC()))
			}
		}
	}()
	for i := len(truth) - 1; i >= 0; i-- {
		for at < len(frames) && s.dispatches(frames[at-1].PC) {
			// The code that made the system call. NtContinue lets it return to another place.
			pc := frames[at].PC
			moved = moved || pc != *stub && pc != *stub-0xb && pc != *stub+5
			at++
		}
		if moved {
			if sc.moved++; sc.moved < 3 {
				t.Logf("step %d at %s: returns to %s, called at %s", s.tr.Steps(), s.where(s.tr.PC()), s.where(frames[at-1].PC), s.where(*stub))
			}
			return
		}
		if n := len(frames); at >= n && n > 1 && s.dispatches(frames[n-2].PC) && sc.half < 8 {
			moved = true // half of that is written
			sc.half++
			return
		}
		if at >= len(frames) {
			if sc.short++; sc.short < 6 {
				t.Logf("step %d at %s: %d frames, %d calls", s.tr.Steps(), s.where(s.tr.PC()), len(frames), len(truth))
			}
			return
		}
		if frames[at].PC != truth[i].RA {
			if sc.wrong++; sc.wrong < 12 {
				t.Logf("step %d at %s % x: frame %d is %s (%d), truth %s", s.tr.Steps(), s.where(s.tr.PC()), s.bytesAt(), at, s.where(frames[at].PC), frames[at].Prov, s.where(truth[i].RA))
			}
			return
		}
		at++
	}
	sc.right++
}

// codeOnly is a process's memory without its data: when a sample is walked, those are other ones than
// when it was taken. What a walk needs of them was copied.
type codeOnly struct{ s *subject }

func (m codeOnly) Word(addr uint64) (uint64, bool) {
	if !m.s.native.Executable(addr) {
		return 0, false
	}
	return m.s.p.Memory().Word(addr)
}

func (m codeOnly) Bytes(addr uint64, p []byte) bool {
	return m.s.native.Executable(addr) && m.s.p.Memory().Bytes(addr, p)
}

func (s *subject) bytesAt() []byte {
	b := make([]byte, 8)
	s.tr.Memory().Bytes(s.tr.PC(), b)
	return b
}

func (s *subject) moduleOf(pc uint64) string {
	name, _, _ := strings.Cut(s.where(pc), "+")
	return name
}

// dispatches reports whether pc is in one of Wine's dispatchers of system calls.
func (s *subject) dispatches(pc uint64) bool {
	a, ok := s.native.find(pc)
	if !ok {
		return false
	}
	m := s.native.modules[a.module]
	if m.Name() != wineLibrary || m.File == nil || m.File.table == nil {
		return false
	}
	for _, at := range []uint64{pc, pc - 1} {
		if r := m.File.table.Lookup(at - m.Bias); r != nil {
			if _, _, ok := derefOf(r.CFAExpr); ok {
				return true
			}
			if r.RA.How == 4 || r.RA.How == 5 {
				return true
			}
		}
	}
	return false
}

// stepWindows steps from the first breakpoint to the second, or for limit instructions.
func (s *subject) stepWindows(t *testing.T, w *wine.Process, limit int) (sc windowsScore) {
	sc.images = map[string]int{}
	var stub uint64
	d := s.openDispatcher(t)
	defer func() {
		sc.dispatched, sc.between = d.right, d.between
		if d.wrong > 0 {
			t.Errorf("%d of %d instructions of Wine's dispatcher do not lead to the system call", d.wrong, d.right+d.between+d.wrong)
		}
	}()
	for sc.steps < limit {
		s.compareWindows(t, w, &sc, &stub)
		d.check(t, s)
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
	return sc
}

// TestWindowsEveryInstruction checks that no caller is wrong at any instruction of Windows programs,
// of the Windows libraries that they call, and of Wine's own code.
func TestWindowsEveryInstruction(t *testing.T) {
	for i, c := range []struct {
		compiler, source, name string
		flags                  []string
	}{
		{"x86_64-w64-mingw32-gcc", "shapes.c", "O2", []string{"-O2"}},
		{"x86_64-w64-mingw32-gcc", "shapes.c", "O0", []string{"-O0"}},
		{"x86_64-w64-mingw32-gcc", "shapes.c", "O2 frame pointer", []string{"-O2", "-fno-omit-frame-pointer"}},
		{"x86_64-w64-mingw32-gcc", "shapes.c", "Os, jumps", []string{"-Os", "-DJUMPS"}},
		{"clang", "shapes.c", "O2", []string{"-O2"}},
		{"clang", "shapes.c", "O0", []string{"-O0"}},
		{"clang", "shapes.c", "O2 frame pointer", []string{"-O2", "-fno-omit-frame-pointer"}},
		{"x86_64-w64-mingw32-g++", "throws.cpp", "O2", []string{"-O2", "-static", "-DTHROWS"}},
		{"x86_64-w64-mingw32-g++", "throws.cpp", "O0", []string{"-O0", "-static", "-DTHROWS"}},
	} {
		t.Run(fmt.Sprint(c.compiler, " ", c.source, " ", c.name), func(t *testing.T) {
			limit := 100000
			if !fixture.Full(t) {
				if limit = 4000; i != 0 && i != 7 {
					fixture.OnlyFull(t, "two of the programs")
				}
			}
			text, err := os.ReadFile("testdata/windows/" + c.source)
			if err != nil {
				t.Fatal(err)
			}
			s, w := windowsSubject(t, fixture.MinGW(t, c.compiler, "shapes.exe", string(text), c.flags...))
			sc := s.stepWindows(t, w, limit)
			t.Logf("%+v", sc)
			if sc.wrong > 0 || sc.short > 0 {
				t.Errorf("%d wrong callers, %d missing, of %d instructions", sc.wrong, sc.short, sc.steps)
			}
			if sc.incomplete > 0 || sc.guessed > 0 {
				t.Errorf("%d stacks are not complete, %d are guesses, of %d", sc.incomplete, sc.guessed, sc.steps)
			}
			if sc.moved > 400 {
				t.Errorf("%d system calls that return to another place, of %d instructions", sc.moved, sc.steps)
			}
			if i == 7 && fixture.Full(t) && sc.dispatched < 20 {
				t.Errorf("only %d instructions of Wine's dispatcher", sc.dispatched)
			}
			if sc.steps < 2000 {
				t.Errorf("only %d instructions", sc.steps)
			}
		})
	}
}

// TestWindowsGeneratedCode checks that no caller is wrong at any instruction of code that a program
// generates and registers unwind data for.
func TestWindowsGeneratedCode(t *testing.T) {
	text, err := os.ReadFile("testdata/windows/generated.c")
	if err != nil {
		t.Fatal(err)
	}
	s, w := windowsSubject(t, fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "generated.exe", string(text), "-O2"))
	sc := s.stepWindows(t, w, 4000)
	t.Logf("%+v", sc)
	if sc.wrong > 0 || sc.short > 0 || sc.incomplete > 0 || sc.guessed > 0 {
		t.Errorf("%d wrong callers, %d missing, %d stacks are not complete, %d are guesses, of %d instructions", sc.wrong, sc.short, sc.incomplete, sc.guessed, sc.steps)
	}
	if n := sc.images["[anon]"]; n < 500 {
		t.Errorf("%d instructions of generated code were checked: %v", n, sc.images)
	}
}
