package dump

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// TestLockObjects dumps .NET threads that wait to enter objects of System.Threading.Lock: that each waits,
// and who holds what it waits for.
func TestLockObjects(t *testing.T) {
	for _, major := range []int{9, 10} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			dumpTurns(t, fixture.DotNetCommand(t, major, fixture.CSharp(t, major, "testdata/Locks.cs")), lockObjects)
		})
	}
}

// lockObjects returns what is wrong about the threads of Locks.cs, and whether one of those that take turns
// was inside while the others waited for it.
func lockObjects(p *Process) (wrong string, all bool) {
	main := p.byTID(p.PID)
	if main == nil || main.DotNet == nil {
		return "the main thread is not .NET's", false
	}
	holds := func(t *Thread, object uint64) bool {
		return t != nil && t.DotNet != nil && slices.ContainsFunc(t.DotNet.Holds, func(l Lock) bool { return l.Address == object })
	}
	waiting := 0
	objects := map[string]uint64{}
	for i := range p.Threads {
		t := &p.Threads[i]
		if t.DotNet == nil || t.DotNet.Changed {
			continue // it ran while it was read, on every attempt
		}
		w, owner := t.DotNet.WaitsFor, ""
		switch t.Name {
		case "one", "two":
			owner = map[string]string{"one": "two", "two": "one"}[t.Name]
		case "enter", "enter too":
			owner = main.Name
		case "stock-0", "stock-1", "stock-2":
			if w == nil || w.OwnerTID == 0 {
				continue
			}
			owner = w.Owner
			o := p.byTID(w.OwnerTID)
			if o == nil || o == t || !strings.HasPrefix(o.Name, "stock-") || holds(t, w.Address) {
				wrong += fmt.Sprintf("%q waits for %q; ", t.Name, owner)
			} else if o.DotNet.Changed || !slices.ContainsFunc(o.Frames, func(f Frame) bool { return f.Function == "Program.Inside" }) {
				continue // it is about to leave, or has just entered
			}
			waiting++
		default:
			if w != nil && w.How == "waiting to lock" {
				wrong += fmt.Sprintf("%q waits for %s; ", t.Name, w.Class)
			}
			continue
		}
		if w == nil || w.How != "waiting to lock" || w.Class != "System.Threading.Lock" || w.Owner != owner {
			wrong += fmt.Sprintf("%q waits for %+v, should be for a Lock held by %q; ", t.Name, w, owner)
			continue
		}
		objects[t.Name] = w.Address
		if o := p.byTID(w.OwnerTID); !holds(o, w.Address) {
			wrong += fmt.Sprintf("%q does not hold what %q waits for; ", owner, t.Name)
		}
	}
	if objects["enter"] != objects["enter too"] || objects["one"] == objects["two"] || objects["one"] == objects["enter"] {
		wrong += fmt.Sprintf("they wait for %#x; ", objects)
	}
	if len(p.Deadlocks) != 1 || len(p.Deadlocks[0]) != 2 {
		wrong += fmt.Sprintf("the deadlocks are %v; ", p.Deadlocks)
	}
	return wrong, waiting == 2
}
