//go:build linux && amd64

package hotspot

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
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

// TestMixedStacks walks stacks of a Java thread at random moments, through
// generated code, the VM's C++ and the C library, to the thread's first frame.
func TestMixedStacks(t *testing.T) {
	classes := fixture.Classes(t, 8, filepath.Join("testdata", "steps", "Steps.java"))
	for _, major := range fixture.JDKs(t, 8) {
		for _, flags := range []string{"", "-Xint"} {
			t.Run(fmt.Sprint(major, flags), func(t *testing.T) {
				t.Parallel()
				testMixed(t, major, classes, flags)
			})
		}
	}
}

func testMixed(t *testing.T, major int, classes, flags string) {
	args := append([]string{"-cp", classes, "-Xmx64m"}, strings.Fields(flags)...)
	cmd := startStepped(t, major, append(args, "Steps", "mixed")...)
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	time.Sleep(500 * time.Millisecond)
	vm, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	n, err := native.New(p, native.NewFiles())
	if err != nil {
		t.Fatal(err)
	}
	tid := threadNamed(t, p, "stepped")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tr, err := oracle.Attach(tid)
	if err != nil {
		t.Skipf("cannot trace a thread here: %v", err)
	}
	defer tr.Detach()
	w := walk.New(cpu.AMD64, n)
	w.Add(vm)
	w.Add(n)
	s := &stepped{t: t, vm: vm, tr: tr}
	var snap capture.Snapshot
	var out walk.Stack
	// The thread has a name before it reaches its first method.
	for {
		vm.BeginBatch()
		if s.walkAll(); slices.ContainsFunc(s.stack.Frames, func(f walk.Frame) bool { return s.frameName(f) == "Steps.run" }) {
			break
		}
		// On a busy machine it may not have run for a long time.
		if ran := tr.Ran(); ran > 20*time.Second {
			t.Fatalf("the thread has run %v, and its stacks do not show Steps.run", ran)
		}
		if err := tr.Continue(time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	complete, inNative, exact, bad := 0, 0, 0, 0
	const samples = 300
	for i := range samples {
		if err := tr.Continue(time.Duration(1000+i*37%3000) * time.Microsecond); err != nil {
			t.Fatal(err)
		}
		p.Memory().Invalidate()
		vm.BeginBatch()
		tr.Snapshot(&snap, 256<<10)
		w.Walk(&snap, p.Memory(), &out)
		if !vm.Owns(snap.Regs.PC) {
			inNative++
		}
		if out.Worst == walk.Exact {
			exact++
		}
		var names, marks []string
		for _, f := range out.Frames {
			if f.Owner == 1 {
				names = append(names, s.frameName(f))
			} else {
				names = append(names, "native")
			}
			marks = append(marks, fmt.Sprintf("%#x %v", f.PC, f.Prov))
		}
		all := strings.Join(names, " ")
		if out.End == walk.EndComplete && strings.Contains(all, "Steps.run java/lang/Thread.run") {
			complete++
		} else if bad++; bad <= 5 {
			t.Logf("sample %d ends %v at %#x kind %d: %s; %s", i, out.End, out.EndPC, out.EndKind, all, strings.Join(marks, ", "))
		}
	}
	t.Logf("%d of %d stacks complete, %d began in native code, %d all exact", complete, samples, inNative, exact)
	// JDK 11 calls interpreted methods of the CDS archive through jumps in the archive itself,
	// which is not a code cache; a sample there loses the stack.
	if allowed := map[bool]int{true: samples / 20, false: 1}[major == 11]; complete < samples-allowed {
		t.Errorf("only %d of %d stacks are complete", complete, samples)
	}
}

// BenchmarkStepLive walks the Java frames of one snapshot of a live VM, reading the copy.
func BenchmarkStepLive(b *testing.B) {
	classes := fixture.Classes(b, 8, filepath.Join("testdata", "steps", "Steps.java"))
	cmd := startStepped(b, 25, "-cp", classes, "-Xmx64m", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Steps.*", "Steps", "poll")
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	time.Sleep(2 * time.Second)
	vm, err := Open(p)
	if err != nil {
		b.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tr, err := oracle.Attach(threadNamed(b, p, "stepped"))
	if err != nil {
		b.Skipf("cannot trace a thread here: %v", err)
	}
	defer tr.Detach()
	s := &stepped{vm: vm, tr: tr}
	for !vm.Owns(tr.PC()) {
		if err := tr.Continue(time.Millisecond); err != nil {
			b.Fatal(err)
		}
	}
	start := *s.cursor(64 << 10)
	frames := 0
	b.ReportAllocs()
	for b.Loop() {
		c := &s.c
		*c = start
		c.Stack.Reset()
		for vm.Owns(c.Regs.PC) && vm.Step(c) == walk.Stepped {
		}
		frames = len(c.Stack.Frames)
	}
	b.ReportMetric(float64(frames), "frames")
}
