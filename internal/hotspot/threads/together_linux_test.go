package threads

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/hotspot/metadata"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// What is read for all threads together is the same as what is read for each, and it covers all, in
// every layout of the heap.
func TestTogetherAsSingly(t *testing.T) {
	classes := fixture.Classes(t, 8, "-g", "../testdata/Locks.java")
	for _, major := range fixture.JDKs(t, 8) {
		for _, flags := range fixture.HeapFlags(t, major) {
			t.Run(fmt.Sprintf("jdk%d%s", major, flags), func(t *testing.T) {
				t.Parallel()
				args := append(strings.Fields(flags), "-Xmx256m", "-cp", classes, "Locks")
				started := fixture.Start(t, exec.Command(fixture.JDKTool(t, major, "java"), args...))
				started.Await("ready")
				p, err := target.Open(started.PID())
				if err != nil {
					t.Fatal(err) // it is a child
				}
				defer p.Close()
				of, _, err := vmstructs.Open(p, nil)
				if err != nil {
					t.Fatal(err)
				}
				togetherAsSingly(t, New(of, metadata.NewHeap(of), func(uint64) (string, bool) { return "", false }))
			})
		}
	}
}

// togetherAsSingly checks that what is read for all threads together is the same as what is read
// for each, and that it covers all.
func togetherAsSingly(t *testing.T, all *Threads) {
	t.Helper()
	said := ""
	for range 20 { // a collector that moves something meanwhile, or a thread that ends
		said = ""
		c := all.DumpThreads()
		c.readNames()
		singly := all.ThreadNames()
		for _, th := range c.threads {
			if name := singly[int(th.TID)]; name == "" || c.names[th.TID] != name {
				said += fmt.Sprintf("thread %d is %q singly, %q with the others\n", th.TID, name, c.names[th.TID])
			}
			r := threadRead{ts: all, t: &th}
			if r.read(); all.heap.Handles && r.object == nil {
				said += fmt.Sprintf("the object of thread %d was not read at once\n", th.TID)
			}
			if all.off.vthread != vmstructs.Absent && !c.runsItself(&th) {
				said += fmt.Sprintf("thread %d seems to carry a virtual one\n", th.TID)
			}
		}
		if said == "" {
			return
		}
	}
	t.Error(said)
}
