package hotspot

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/hotspot/threads"
)

// owners are what the threads of Locks.java wait for, and who holds it.
var owners = map[string]struct {
	kind         threads.WaitKind
	class, owner string
}{
	"blocked":       {threads.WaitsToLock, "Locks$Plain", "owner"},
	"blocked-too":   {threads.WaitsToLock, "Locks$Fat", "owner"},
	"waiting":       {threads.WaitsOn, "Locks$Waited", ""},
	"timed-waiting": {threads.WaitsOn, "Locks$Waited", ""},
	"locking":       {threads.WaitsParked, "java.util.concurrent.locks.ReentrantLock$NonfairSync", "owner"},
	"reading":       {threads.WaitsParked, "java.util.concurrent.locks.ReentrantReadWriteLock$NonfairSync", "owner"},
	"parked":        {threads.WaitsParked, "Locks$Blocker", ""},
	"timed-parked":  {threads.WaitsParked, "Locks$Blocker", ""},
	"sleeping":      {},
	"owner":         {},
	"dead-left":     {threads.WaitsToLock, "java.lang.Object", "dead-right"},
	"dead-right":    {threads.WaitsToLock, "java.lang.Object", "dead-left"},
}

var (
	lockOfJstack = regexp.MustCompile(`^- (waiting to lock|waiting on|waiting to re-lock in wait\(\)|parking to wait for) +<(0x[0-9a-f]+)> \(a (.*)\)$`)
	headOfJstack = regexp.MustCompile(`^".*" #(\d+) (?:\[\d+\] )?(daemon )?(?:prio=(\d+) )?`)
)

// The reported waits, owners and properties of threads are those that jstack prints and those of
// the program, in every layout of the heap.
func TestThreadInfo(t *testing.T) {
	forMajors(t, func(t *testing.T, major int) {
		layouts := fixture.HeapFlags(t, major)
		if major == 21 {
			layouts = append(layouts, "-XX:+UnlockExperimentalVMOptions -XX:LockingMode=2") // the way of later releases
		}
		for _, flags := range layouts {
			t.Run(flags, func(t *testing.T) {
				t.Parallel()
				p := startProgram(t, major, append(strings.Fields(flags), "Locks")...)
				vm := openVM(t, p)
				for _, n := range vm.Notes() {
					t.Errorf("note: %s", n)
				}
				// A thread of the VM's own may have something to do between the two looks, or end,
				// and the collector may move the object that is waited for; this does not happen
				// each time.
				fixture.Attempts(t, 4, func() string {
					var wrong []string
					bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
					want := jstack(t, major, p.PID)
					vm.BeginBatch()
					began := time.Now()
					c := vm.Threads.DumpThreads()
					names, took := make(map[uint32]string), time.Since(began)
					for tid, w := range want {
						names[uint32(tid)] = w.name
					}
					moved, locks := 0, 0
					for tid, w := range want {
						if !w.java || w.name == "Attach Listener" {
							continue
						}
						info, ok := c.Thread(uint32(tid))
						h := headOfJstack.FindStringSubmatch(w.header)
						if h == nil {
							t.Fatalf("%q", w.header)
						}
						if !ok || info.Name != w.name || fmt.Sprint(info.ID) != h[1] || info.Daemon != (h[2] != "") || h[3] != "" && fmt.Sprint(info.Priority) != h[3] {
							bad("%v %+v; jstack says %s", ok, info, w.header)
						}
						wantKind := threads.KindJava
						switch {
						case strings.Contains(w.name, "CompilerThread"):
							wantKind = threads.KindCompiler
						case slices.Contains([]string{"Signal Dispatcher", "Service Thread", "Monitor Deflation Thread", "Notification Thread", "Sweeper thread"}, w.name):
							wantKind = threads.KindVM
						}
						if info.Kind != wantKind || c.Kind(uint32(tid), "G1 Conc#0") != wantKind {
							bad("%q is of kind %s", w.name, info.Kind)
						}
						if o, ok := owners[w.name]; ok {
							if got := info.Wait; got.Kind != o.kind || got.Object.Class != o.class || names[got.Owner] != o.owner {
								bad("%q waits by %d for %s of %q; it should be %+v", w.name, got.Kind, got.Object.Class, names[got.Owner], o)
							}
						}
						for _, l := range w.locks {
							m := lockOfJstack.FindStringSubmatch(l)
							if m == nil {
								continue
							}
							locks++
							if info.Wait.Object.Class != m[3] {
								bad("%q waits for %s, jstack says %s", w.name, info.Wait.Object.Class, l)
							}
							if fmt.Sprintf("0x%016x", info.Wait.Object.Addr) != m[2] {
								moved++
							}
						}
					}
					if locks < 10 || moved > 0 && !strings.Contains(flags, "Z") {
						bad("%d objects compared, %d were elsewhere", locks, moved)
					}
					// The owner has two monitors that others wait for.
					for tid, w := range want {
						var held []string
						for _, o := range c.Holds(uint32(tid)) {
							held = append(held, o.Class)
						}
						if w.name == "owner" && (!slices.Contains(held, "Locks$Plain") || !slices.Contains(held, "Locks$Fat")) {
							bad("the owner holds %v", held)
						}
					}
					t.Logf("%v for the census of %d, %d objects, %d elsewhere", took, len(want), locks, moved)
					return strings.Join(wrong, "\n")
				})
			})
		}
	})
}
