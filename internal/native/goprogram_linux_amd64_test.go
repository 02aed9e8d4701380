package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/golang"
	"github.com/candid-profiler/candid/internal/walk"
)

const goProgram = `package main

import ("fmt"; "os"; "sort"; "strings")

//go:noinline
func words(n int) []string {
	var out []string
	for i := 0; i < n; i++ {
		out = append(out, fmt.Sprint(i*7919%n, strings.Repeat("x", i%5)))
	}
	sort.Strings(out)
	return out
}

func main() {
	for i := 0; ; i++ {
		if len(words(100 + i%10)) == 0 { os.Exit(1) }
	}
}
`

// TestEveryInstructionOfAGoProgram checks that every stack reaches the first function of its
// goroutine or of its thread's own stack, and includes all callers that the oracle has seen on the
// stack that the thread is on. While a function is leaving one stack for another for good, the last
// function that called is no longer a caller, or the next one has not been called yet: there only
// the end counts.
func TestEveryInstructionOfAGoProgram(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"static", nil},
		{"stripped", []string{"-ldflags=-s -w"}},
		{"pie, stripped", []string{"-buildmode=pie", "-ldflags=-s -w"}},
		{"not optimized", []string{"-gcflags=all=-N -l"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			src, exe := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
			if err := os.WriteFile(src, []byte(goProgram), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("go", append(append([]string{"build"}, c.flags...), "-o", exe, src)...)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("go build: %v\n%s", err, out)
			}
			t.Setenv("GOMAXPROCS", "1")
			t.Setenv("GODEBUG", "asyncpreemptoff=1")
			// The scheduler may leave the first thread idle; another is then tried.
			for range 10 {
				sc := stepGo(t, exe)
				t.Logf("%+v", sc)
				if sc.wrong > 0 {
					t.Errorf("%d of %d stacks are right", sc.right, sc.right+sc.wrong)
				}
				if sc.endless > 0 {
					t.Errorf("%d of 10000 stacks have no end", sc.endless)
				}
				if sc.right+sc.wrong >= 5000 || t.Failed() {
					return
				}
			}
			t.Error("the program's first thread was idle ten times")
		})
	}
}

// stepGo steps a program that was just started 10,000 times.
func stepGo(t *testing.T, exe string) (sc goScore) {
	t.Helper()
	s := newSubject(t, exe)
	s.tr.StaysPopped = true
	if err := s.tr.Continue(100 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	s.open(t)
	for range 10000 {
		s.checkGo(t, &sc)
		if err := s.tr.Step(); err != nil {
			t.Fatal(err)
		}
	}
	return sc
}

// goScore counts the walker's results over the instructions of a Go program.
type goScore struct {
	right, wrong int // stacks, as far as their calls were seen
	deepest      int // calls of a stack that were compared
	leaving      int // instructions that leave one stack for another
	crossed      int // stacks where the caller on another stack was compared too
	unseen       int // nothing has been called on this stack since the oracle began
	endless      int
}

func (s *subject) checkGo(t *testing.T, sc *goScore) {
	s.tr.Snapshot(&s.snap, 1<<16)
	s.p.Memory().Invalidate()
	s.walker.Walk(&s.snap, s.p.Memory(), &s.stack)
	at := s.where(s.tr.PC())
	if s.stack.End != walk.EndComplete {
		if sc.endless++; sc.endless < 6 {
			t.Logf("step %d at %s: %v at %s", s.tr.Steps(), at, s.stack.End, s.where(s.stack.EndPC))
		}
	}
	if r := s.role(s.tr.PC()); r == golang.Enter || r == golang.Leave && len(s.stack.Frames) == 1 {
		sc.leaving++
		return
	}
	// The oracle keeps the calls of all goroutines in one list: the last ones belong to this stack
	// if they lie on it.
	truth, f := s.tr.Callers(), s.stack.Frames
	low, high := s.goStack()
	n := 0
	for n < len(truth) && (high == 0 && n == 0 || truth[len(truth)-1-n].SP >= low && truth[len(truth)-1-n].SP < high) {
		n++
	}
	// The function that switched stacks was called on the goroutine's.
	if n < len(truth) && n < len(f) && s.role(f[n].PC-1) == golang.Switch {
		n++
		sc.crossed++
	}
	if n == 0 {
		sc.unseen++
		return
	}
	for i := range n {
		if i+1 == len(f) && s.role(f[i].PC-1) == golang.Leave {
			break // called before the goroutine was descheduled
		}
		if ra := truth[len(truth)-1-i].RA; i+1 >= len(f) || f[i+1].PC != ra {
			if sc.wrong++; sc.wrong < 6 {
				t.Logf("step %d at %s: caller %d of %d is not %s; %d frames, %v", s.tr.Steps(), at, i+1, n, s.where(ra), len(f), s.stack.End)
			}
			return
		}
	}
	sc.right++
	sc.deepest = max(sc.deepest, n)
}

// goStack returns the bounds of the stack that the thread is on, 0 if they are not known: those of
// the running g, if the stack pointer is within them. The g is read from the thread's own storage,
// just below its base, because R14 holds something else while it is reloaded after a call of
// assembler code.
func (s *subject) goStack() (low, high uint64) {
	g, ok := s.tr.Memory().Word(s.tr.ThreadPointer() - 8)
	if !ok {
		return 0, 0
	}
	low, ok1 := s.tr.Memory().Word(g)
	high, ok2 := s.tr.Memory().Word(g + 8)
	if sp := s.tr.SP(); !ok1 || !ok2 || sp < low || sp >= high {
		return 0, 0
	}
	return low, high
}

// role returns the role of the Go function at pc.
func (s *subject) role(pc uint64) golang.Role {
	a, ok := s.native.find(pc)
	if !ok || s.native.modules[a.module].File == nil {
		return golang.Plain
	}
	m := s.native.modules[a.module]
	if r := m.File.goes.Lookup(pc - m.Bias); r != nil {
		return r.Role
	}
	return golang.Plain
}
