//go:build linux && amd64

package hotspot

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestVirtualThread stops the carrier of a virtual thread whose outer frames are
// in the heap and compares the walk with what the program does.
func TestVirtualThread(t *testing.T) {
	for _, major := range fixture.JDKs(t, 21) {
		for _, flags := range []string{"", "-Xint"} {
			t.Run(strings.TrimSpace(string(rune('0'+major/10))+string(rune('0'+major%10))+" "+flags), func(t *testing.T) {
				testVirtualThread(t, major, flags)
			})
		}
	}
}

func testVirtualThread(t *testing.T, major int, flags string) {
	dir := fixture.Classes(t, major, filepath.Join("testdata", "steps", "Virtual.java"))
	args := []string{"-cp", dir, "-Xmx128m", "-Djdk.virtualThreadScheduler.parallelism=1", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Virtual.*"}
	args = append(args, strings.Fields(flags)...)
	cmd := startStepped(t, major, append(args, "Virtual")...)
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	time.Sleep(1500 * time.Millisecond)
	vm, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	tid := carrier(t, vm)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tr, err := oracle.Attach(tid)
	if err != nil {
		t.Skipf("cannot trace a thread here: %v", err)
	}
	defer tr.Detach()
	s := &stepped{t: t, vm: vm, tr: tr}
	mounted, barriers := 0, 0
	// Until a stack without a barrier was seen, 21 does not know enterSpecial.
	hidden := strings.NewReplacer("jdk/internal/vm/Continuation.enterSpecial ", "", "StubRoutines (continuation stubs) ", "")
	// If other processes compete for the CPU the virtual thread is seldom mounted.
	for look := 0; look < 60 || look < 2000 && (mounted < 10 || barriers == 0); look++ {
		vm.BeginBatch()
		s.walkAll()
		var names []string
		var flags []walk.FrameFlags
		for _, f := range s.stack.Frames {
			names, flags = append(names, s.frameName(f)), append(flags, f.Flags)
			if f.Flags&walk.Stitched != 0 && strings.HasPrefix(s.frameName(f), "Virtual.g") {
				t.Errorf("%s was not copied with the sample", s.frameName(f))
			}
		}
		all := strings.Join(names, " ")
		if strings.Contains(all, "Virtual.work") || strings.Contains(all, "Virtual.mix") {
			mounted++
			const want = "Virtual.g6 Virtual.g5 Virtual.g4 Virtual.g3 Virtual.g2 Virtual.g1 "
			if !strings.Contains(all, want) || !strings.Contains(hidden.Replace(all), "jdk/internal/vm/Continuation.enter jdk/internal/vm/Continuation.run") ||
				!strings.Contains(all, "ForkJoinWorkerThread.run StubRoutines") {
				t.Errorf("stack %v\n flags %v", names, flags)
				break
			}
			if len(s.c.Regions) > 3 {
				barriers++
			}
		}
		if err := tr.Continue(3 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d stacks of the mounted virtual thread, %d with frames from the heap", mounted, barriers)
	if mounted < 10 || barriers == 0 {
		t.Errorf("only %d stacks, %d with frames in the heap", mounted, barriers)
	}
}

// carrier finds the only thread that carries virtual threads. Its kernel name is cut to the part
// that it shares with the pool's thread for delays.
func carrier(t *testing.T, vm *VM) int {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
		vm.BeginBatch()
		for tid, name := range vm.Threads.ThreadNames() {
			if strings.HasPrefix(name, "ForkJoinPool-1-worker-") {
				return tid
			}
		}
	}
	t.Fatal("no thread carries virtual threads")
	return 0
}
