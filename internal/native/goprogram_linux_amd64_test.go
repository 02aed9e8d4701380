package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
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

// TestEveryInstructionOfAGoProgram: a static program whose tables are in a
// compressed .debug_frame, or nowhere. Go's tables say nothing of the switches
// between its stacks and err in some hand-written code (the swap of stacks
// itself), and goroutines end in a way that only a stepper for Go would know, so
// that only callers are compared, and not all can be right.
func TestEveryInstructionOfAGoProgram(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go command is not installed")
	}
	for _, c := range []struct {
		name, ldflags string
		least         int // right callers, in a thousand
	}{
		{"with debug_frame", "", 990},
		{"stripped", "-s -w", 940},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			src, exe := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
			if err := os.WriteFile(src, []byte(goProgram), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(goTool, "build", "-ldflags="+c.ldflags, "-o", exe, src)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Skipf("go build: %v\n%s", err, out)
			}
			t.Setenv("GOMAXPROCS", "1")
			t.Setenv("GOGC", "off")
			t.Setenv("GODEBUG", "asyncpreemptoff=1")
			s := newSubject(t, exe)
			if err := s.tr.Continue(100 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			s.open(t)
			sc := s.run(t, 10000)
			t.Logf("%+v", sc)
			if sc.steps < 1000 {
				t.Skip("the program's first thread was idle")
			}
			if total := sc.right + sc.wrong + sc.none; sc.right*1000 < total*c.least {
				t.Errorf("%d of %d callers are right", sc.right, total)
			}
		})
	}
}
