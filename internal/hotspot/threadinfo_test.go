package hotspot

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// owners are what the threads of Locks.java wait for, and who holds it.
var owners = map[string]struct {
	kind         WaitKind
	class, owner string
}{
	"blocked":       {WaitsToLock, "Locks$Plain", "owner"},
	"blocked-too":   {WaitsToLock, "Locks$Fat", "owner"},
	"waiting":       {WaitsOn, "Locks$Waited", ""},
	"timed-waiting": {WaitsOn, "Locks$Waited", ""},
	"locking":       {WaitsParked, "java.util.concurrent.locks.ReentrantLock$NonfairSync", "owner"},
	"reading":       {WaitsParked, "java.util.concurrent.locks.ReentrantReadWriteLock$NonfairSync", "owner"},
	"parked":        {WaitsParked, "Locks$Blocker", ""},
	"timed-parked":  {WaitsParked, "Locks$Blocker", ""},
	"sleeping":      {},
	"owner":         {},
	"dead-left":     {WaitsToLock, "java.lang.Object", "dead-right"},
	"dead-right":    {WaitsToLock, "java.lang.Object", "dead-left"},
}

var (
	lockOfJstack = regexp.MustCompile(`^- (waiting to lock|waiting on|waiting to re-lock in wait\(\)|parking to wait for) +<(0x[0-9a-f]+)> \(a (.*)\)$`)
	headOfJstack = regexp.MustCompile(`^".*" #(\d+) (?:\[\d+\] )?(daemon )?(?:prio=(\d+) )?`)
)

// togetherAsSingly checks that what is read for all threads together is the same as what is read
// for each, and that it covers all.
func togetherAsSingly(t *testing.T, vm *VM) {
	t.Helper()
	said := ""
	for range 20 { // a collector that moves something meanwhile, or a thread that ends
		said = ""
		c := vm.DumpThreads()
		c.readNames()
		singly := vm.ThreadNames()
		for _, th := range c.threads {
			if name := singly[int(th.tid)]; name == "" || c.names[th.tid] != name {
				said += fmt.Sprintf("thread %d is %q singly, %q with the others\n", th.tid, name, c.names[th.tid])
			}
			r := threadRead{vm: vm, t: &th}
			if r.read(); vm.heap.Handles && r.object == nil {
				said += fmt.Sprintf("the object of thread %d was not read at once\n", th.tid)
			}
			if vm.off.vthread != absent && !c.runsItself(&th) {
				said += fmt.Sprintf("thread %d seems to carry a virtual one\n", th.tid)
			}
		}
		if said == "" {
			return
		}
	}
	t.Error(said)
}

// The reported waits, owners and properties of threads are those that jstack prints and those of
// the program, in every layout of the heap.
func TestThreadInfo(t *testing.T) {
	forMajors(t, func(t *testing.T, major int) {
		layouts := heapFlags(t, major)
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
					c := vm.DumpThreads()
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
						wantKind := KindJava
						switch {
						case strings.Contains(w.name, "CompilerThread"):
							wantKind = KindCompiler
						case slices.Contains([]string{"Signal Dispatcher", "Service Thread", "Monitor Deflation Thread", "Notification Thread", "Sweeper thread"}, w.name):
							wantKind = KindVM
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
					t.Logf("%v for the census of %d, %d objects, %d elsewhere", took, len(c.threads), locks, moved)
					return strings.Join(wrong, "\n")
				})
				togetherAsSingly(t, vm)
			})
		}
	})
}
