package native

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestEveryInstructionOfACompilerThread steps a thread of the JVM that runs nothing but C++. It
// tests libjvm.so's tables at each instruction, in a library that keeps only its dynamic symbols.
func TestEveryInstructionOfACompilerThread(t *testing.T) {
	for _, version := range []int{17, 25} {
		t.Run(strconv.Itoa(version), func(t *testing.T) { stepCompiler(t, fixture.JDKTool(t, version, "java")) })
	}
}

func stepCompiler(t *testing.T, java string) {
	src := filepath.Join(t.TempDir(), "Idle.java")
	if err := os.WriteFile(src, []byte(`class Idle { public static void main(String[] a) throws Exception {
		for (int i = 0; i < 2000; i++) { java.util.stream.IntStream.range(0, i).mapToObj(Integer::toString).sorted().count(); Thread.sleep(5); } } }`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(java, "-Xcomp", "-XX:TieredStopAtLevel=4", src)
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	tid := 0
	for end := time.Now().Add(time.Minute); tid == 0 && time.Now().Before(end); {
		time.Sleep(25 * time.Millisecond)
		threads, _ := p.Threads()
		for _, th := range threads {
			// It has compiled for a while, so it has work.
			if strings.HasPrefix(th.Name, "C2 Compiler") && th.CPU > 20e6 {
				tid = th.TID
			}
		}
	}
	if tid == 0 {
		t.Skip("the JVM has no busy C2 compiler thread")
	}
	runtime.LockOSThread() // for good
	tr, err := oracle.Attach(tid)
	if err != nil {
		t.Skipf("cannot trace a thread here: %v", err)
	}
	// A traced thread must be detached before its process can be waited for.
	defer func() { _ = tr.Detach() }()
	s := &subject{tr: tr}
	start := cpuTime()
	s.open(t)
	tr.Snapshot(&s.snap, 1<<16)
	s.walker.Walk(&s.snap, s.p.Memory(), &s.stack)
	cold := time.Duration(cpuTime() - start)
	t.Logf("from nothing to %d walked frames in %v of CPU", len(s.stack.Frames), cold)
	if cold > 100*time.Millisecond {
		t.Errorf("the first walk took %v of CPU", cold)
	}
	var sc score
	for sc.steps < 15000 {
		s.check(t, &sc)
		if sc.ends[walk.EndComplete] != sc.steps && sc.bad < 5 {
			sc.bad++
			t.Errorf("step %d at %s: end %v at %s", tr.Steps(), s.where(tr.PC()), s.stack.End, s.where(s.stack.EndPC))
		}
		err := tr.Step()
		for end := time.Now().Add(time.Minute); errors.Is(err, oracle.ErrBlocked) && time.Now().Before(end); {
			err = tr.Step() // it has nothing to compile at the moment
		}
		if err != nil {
			t.Logf("stopped after %d steps: %v", sc.steps, err)
			break
		}
	}
	t.Logf("%+v", sc)
	if sc.wrong+sc.none+sc.bad > 0 {
		t.Errorf("%d wrong callers, %d missing, %d wrong further out", sc.wrong, sc.none, sc.bad)
	}
	if sc.steps < 1000 {
		t.Errorf("only %d instructions seen", sc.steps)
	}
}
