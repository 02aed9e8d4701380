package hotspot

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/target"
)

// mountedThreads returns how many threads carry a virtual one.
func mountedThreads(vm *VM) (n int) {
	for tid := range vm.Threads.ThreadNames() {
		if _, _, ok := vm.Threads.VirtualThread(uint32(tid)); ok {
			n++
		}
	}
	return n
}

// The virtual threads that are mounted are identified by their Java ids and names.
func TestMountedVirtualThreads(t *testing.T) {
	classes := fixture.Classes(t, 21, filepath.Join("testdata", "Mounted.java"))
	for _, c := range []struct {
		major int
		flags string
	}{{21, ""}, {21, "-XX:+UseZGC -XX:+ZGenerational"}, {25, ""}, {25, "-XX:+UseZGC"}, {27, ""}} {
		t.Run(fmt.Sprintf("jdk%d%s", c.major, c.flags), func(t *testing.T) {
			args := append(strings.Fields(c.flags), "-Xmx64m", "-Djdk.virtualThreadScheduler.parallelism=2", "-cp", classes, "Mounted")
			program := fixture.Start(t, exec.Command(fixture.JDKTool(t, c.major, "java"), args...))
			var a, b uint64
			line := program.Line()
			if _, err := fmt.Sscanf(line, "ids %d %d ready", &a, &b); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			p, err := target.Open(program.PID())
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			vm := openVM(t, p)
			// Both compute without end, and so are mounted as soon as both have been given a CPU.
			for end := time.Now().Add(time.Minute); mountedThreads(vm) < 2 && time.Now().Before(end); {
				time.Sleep(50 * time.Millisecond)
				vm.BeginBatch()
			}
			got := make(map[uint64]string)
			for tid, name := range vm.Threads.ThreadNames() {
				if id, vname, ok := vm.Threads.VirtualThread(uint32(tid)); ok {
					got[id] = vname
					if again, name, ok := vm.Threads.DumpThreads().Virtual(uint32(tid)); !ok || again != id || name != vname {
						t.Errorf("asked by the census it is %d %q (%v), not %d %q", again, name, ok, id, vname)
					}
					if !strings.HasPrefix(name, "ForkJoinPool") {
						t.Errorf("thread %q carries virtual thread %d", name, id)
					}
				}
			}
			if name, ok := got[a]; !ok || name != "spinner-é" {
				t.Errorf("virtual thread %d is %q (%v); all: %v", a, name, ok, got)
			}
			if name, ok := got[b]; !ok || name != "" || len(got) != 2 {
				t.Errorf("virtual thread %d is %q (%v); all: %v", b, name, ok, got)
			}
		})
	}
}
