package hotspot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/hotspot/threads"
)

// The states of threads are those that jstack prints, in every layout of the heap.
func TestThreadState(t *testing.T) {
	forMajors(t, func(t *testing.T, major int) {
		for _, flags := range fixture.HeapFlags(t, major) {
			t.Run(flags, func(t *testing.T) {
				t.Parallel()
				p := startProgram(t, major, append(strings.Fields(flags), "Locks")...)
				vm := openVM(t, p)
				seen := make(map[threads.JavaState]int)
				// A thread of the VM's own may have something to do between the two looks, or end;
				// this does not happen each time.
				fixture.Attempts(t, 4, func() string {
					clear(seen)
					var wrong []string
					for tid, w := range jstack(t, major, p.PID) {
						if !w.java || w.name == "Attach Listener" || strings.Contains(w.name, "CompilerThread") {
							continue
						}
						s, ok := vm.Threads.ThreadState(uint32(tid))
						if !ok || s.Java.String() != w.state {
							wrong = append(wrong, fmt.Sprintf("%q is %q, jstack says %q", w.name, s.Java, w.state))
						}
						// For the VM, threads in park and in monitors are blocked, and a sleeping
						// one is not in Java code.
						if s.VM == threads.VMUnknown || s.VM == threads.VMInJava {
							wrong = append(wrong, fmt.Sprintf("%q is %s for the VM", w.name, s.VM))
						}
						seen[s.Java]++
					}
					return strings.Join(wrong, "\n")
				})
				for _, s := range []threads.JavaState{threads.JavaRunnable, threads.JavaSleeping, threads.JavaWaiting, threads.JavaTimedWait, threads.JavaParked, threads.JavaTimedParked, threads.JavaBlocked} {
					if seen[s] == 0 {
						t.Errorf("no thread is %s", s)
					}
				}
				if _, ok := vm.Threads.ThreadState(1); ok {
					t.Error("a thread of another process has a state")
				}
				const n = 200
				began := time.Now()
				for range n {
					vm.Threads.ThreadState(uint32(p.PID) + 1)
				}
				t.Logf("%v a look", time.Since(began)/n)
			})
		}
	})
}
