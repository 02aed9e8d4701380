package hotspot

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// The cache is right after classes and their code have been unloaded and others have taken their
// place: with the program stopped, a VM that has been in use all along reports the same as one that
// was opened just now.
func TestUnloading(t *testing.T) {
	began := time.Now()
	for _, major := range fixture.JDKs(t, 8) {
		t.Run(fmt.Sprintf("jdk%d", major), func(t *testing.T) {
			t.Parallel()
			p := startProgram(t, major, "-XX:+UseSerialGC", "-Xmx32m", "Churn")
			old := openVM(t, p)
			old.Clock = func() uint64 { return uint64(time.Since(began)) }
			lists, standing := 0, 0
			compared, reborn := 0, 0
			torn, whole := 0, 0 // methods that the VM was making or freeing, and others
			last := make(map[uint64]cookie)
			// At least this many rounds, and until the VM has dropped some code and put other code
			// in its place, which it does at a time of its own choosing.
			for end, round := time.Now().Add(2*time.Minute), 0; round < 12 || (reborn == 0 || old.died == 0) && time.Now().Before(end); round++ {
				time.Sleep(150 * time.Millisecond)
				stop(t, p.PID)
				p.Memory().Invalidate()
				old.BeginBatch()
				for i := range old.code.heaps {
					f := &old.code.heaps[i].freed
					if !f.known {
						continue // the VM was stopped while it changed the list
					}
					lists++
					there := freeBlocks(old, &old.code.heaps[i])
					if !slices.EqualFunc(there, f.states[0].blocks, func(a, b freeSpan) bool { return a.start == b.start && a.end == b.end }) {
						t.Errorf("%d blocks are free in heap %d, %d are known", len(there), i, len(f.states[0].blocks))
					}
				}
				now := openVM(t, p)
				// Methods are kept by address too, as for interpreted frames. Only the methods of
				// living code are checked: the memory of others means nothing.
				methods, seen := make(map[uint64]bool), make(map[uint64]cookie)
				eachBlob(t, now, func(n *blob) {
					o := old.find(n.start)
					if o == nil {
						t.Errorf("%s at %#x is not found", n.name, n.start)
						return
					}
					compared++
					if e := old.standsAt(n); e != nil && n.nm != nil && e.compileID == n.nm.compileID && e.since < old.Batch {
						standing++
						if c, ok := last[n.start]; !ok || c.compileID != n.cookie.compileID {
							t.Errorf("compilation %d is said to stand at %#x since batch %d of %d, it was not there in the last", n.nm.compileID, n.start, e.since, old.Batch)
						}
					}
					if c, ok := last[n.start]; ok && c != n.cookie {
						reborn++
					}
					seen[n.start] = n.cookie
					if o.start != n.start || o.cookie != n.cookie || o.kind != n.kind || o.end != n.end || o.name != n.name || o.frameSize != n.frameSize {
						t.Errorf("%#x is %s (%+v), was taken for %s at %#x (%+v)", n.start, n.name, n.cookie, o.name, o.start, o.cookie)
						return
					}
					if n.nm == nil || n.nm.method == 0 {
						return
					}
					methods[n.nm.method] = true
					// The class may have been unloaded before the code was.
					if a, b := old.methodAt(o.nm.methodID), now.methodAt(n.nm.methodID); b != nil && (a == nil || a.function != b.function) {
						t.Errorf("the method at %#x is %v, was taken for %v", n.start, b, a)
					}
					if n.nm.torn {
						torn++
						return
					}
					whole++
					if len(o.nm.pcs) != len(n.nm.pcs) {
						t.Errorf("%#x has %d pcs, was taken to have %d", n.start, len(n.nm.pcs), len(o.nm.pcs))
					}
				})
				last = seen
				for ptr := range methods {
					o, ok1 := old.method(ptr)
					n, ok2 := now.method(ptr)
					if ok2 && (!ok1 || old.methodAt(o).function != now.methodAt(n).function || old.methodAt(o).methodCookie != now.methodAt(n).methodCookie) {
						t.Errorf("Method %#x is %+v (%v), was taken for %+v (%v)", ptr, now.methodAt(n), ok2, old.methodAt(o), ok1)
					}
				}
				syscall.Kill(p.PID, syscall.SIGCONT)
				if t.Failed() {
					break
				}
			}
			// Methods that nobody asked for are dropped, and found again.
			stop(t, p.PID)
			for range sweepAge + 2*aheadBatches {
				old.BeginBatch()
			}
			old.methods.sweep = 0
			old.BeginBatch()
			if n := len(old.methods.byPtr); n != 0 {
				t.Errorf("%d methods are kept for ever", n)
			}
			// As many as there are: how much the VM has compiled by now depends on the machine.
			now, again := openVM(t, p), 0
			eachBlob(t, now, func(n *blob) {
				if n.nm == nil || n.nm.method == 0 {
					return
				}
				b := now.methodOf(n)
				if b == nil {
					return // its class has been unloaded before the code
				}
				o := old.find(n.start)
				if o == nil || o.nm == nil {
					t.Errorf("%s at %#x is not found again", n.name, n.start)
					return
				}
				if a := old.methodOf(o); a == nil || a.function != b.function {
					t.Errorf("the method at %#x is %v, is found again as %v", n.start, b, a)
					return
				}
				again++
			})
			if again == 0 {
				t.Error("no method is there to be found again")
			}
			syscall.Kill(p.PID, syscall.SIGCONT)
			if standing == 0 || lists < len(old.code.heaps)*6 {
				t.Errorf("%d times the free list of a heap was known, and of %d methods where they stand", lists, standing)
			}
			if reborn == 0 || old.died == 0 {
				t.Errorf("no code was replaced, nothing was tested (%d compared, %d died)", compared, old.died)
			}
			if torn > 1+whole/100 {
				t.Errorf("%d of %d methods are taken for torn", torn, torn+whole)
			}
			t.Logf("%d blobs compared, %d took another's place, %d died, %d were known to stand there, %d methods were torn", compared, reborn, old.died, standing, torn)
		})
	}
}

// freeBlocks finds the free blocks of a heap by going through all of its blocks.
func freeBlocks(vm *VM, h *codeHeap) (out []freeSpan) {
	l := &vm.code.layout
	for at := h.low; at < h.freed.states[0].top; {
		n, ok := vm.Mem.Member(at, l.length)
		if !ok || n == 0 {
			break
		}
		if used, _ := vm.Mem.Member(at, l.used); used == 0 {
			out = append(out, freeSpan{start: at, end: at + n<<h.shift})
		}
		at += n << h.shift
	}
	return out
}

// stop stops a process of this test and waits until it has stopped.
func stop(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		running := false
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task.Name()))
			if _, state, _ := strings.Cut(string(b), ") "); err == nil && !strings.HasPrefix(state, "T") {
				running = true
			}
		}
		if !running {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the program does not stop")
}
