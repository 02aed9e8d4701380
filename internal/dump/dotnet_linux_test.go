package dump

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// TestMonitors dumps .NET threads that wait for monitors: what each waits for, and who holds it.
func TestMonitors(t *testing.T) {
	type dotnet struct {
		major int
		on    string
		run   func(fixture.TB, int, string, ...string) *exec.Cmd
	}
	var list []dotnet
	for _, major := range fixture.DotNets {
		list = append(list, dotnet{major, "Linux", fixture.DotNetCommand})
	}
	for _, major := range fixture.WindowsDotNets {
		if fixture.Full(t) {
			list = append(list, dotnet{major, "Windows", fixture.WindowsDotNetCommand})
		}
	}
	for _, n := range list {
		t.Run(fmt.Sprintf("%d on %s", n.major, n.on), func(t *testing.T) {
			dumpTurns(t, n.run(t, n.major, fixture.CSharp(t, n.major, "testdata/Monitors.cs")), monitors)
		})
	}
}

// dumpTurns dumps a program whose threads take turns inside of a lock until ten dumps have shown one
// inside and the others waiting. look returns what is wrong about a dump, and whether it shows that.
func dumpTurns(t *testing.T, program *exec.Cmd, look func(*Process) (wrong string, all bool)) {
	t.Helper()
	p := fixture.Start(t, program)
	p.Await("ready")
	d, err := New(Options{PIDs: []int{p.PID()}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	turns := 0
	for end := time.Now().Add(30 * time.Second); turns < 10; {
		out, err := d.Take()
		if err != nil {
			t.Fatal(err)
		}
		wrong, all := look(&out.Processes[0])
		if wrong != "" {
			var text strings.Builder
			_ = out.WriteText(&text)
			t.Fatalf("%s\n%s", wrong, text.String())
		}
		if all {
			turns++
		} else if time.Now().After(end) {
			fixture.NotPermitted(t, "only %d dumps show one inside and the others waiting", turns)
		}
	}
}

// monitors returns what is wrong about the threads of Monitors.cs, and whether one of those that take
// turns was inside while the others waited for it.
func monitors(p *Process) (wrong string, all bool) {
	main := p.byTID(p.PID)
	if main == nil || main.DotNet == nil || main.Java != nil {
		return "the main thread is not .NET's", false
	}
	holds := func(t *Thread, class string) bool {
		return t != nil && t.DotNet != nil && slices.ContainsFunc(t.DotNet.Holds, func(l Lock) bool { return l.Class == class })
	}
	waiting := 0
	for i := range p.Threads {
		t := &p.Threads[i]
		var w *Lock
		if t.DotNet != nil {
			if w = t.DotNet.WaitsFor; t.DotNet.Changed {
				continue // it ran while it was read, on every attempt
			}
		}
		want, owner := "", ""
		switch t.Name {
		case "one", "two":
			want, owner = "waiting to lock Account", map[string]string{"one": "two", "two": "one"}[t.Name]
			if !holds(t, "Account") {
				wrong += fmt.Sprintf("%q does not hold what the other waits for; ", t.Name)
			}
		case "enter":
			want, owner = "waiting to lock object", main.Name
			if !holds(main, "object") {
				wrong += "the main thread does not hold the gate; "
			}
		case "wait":
			want = "waiting on object"
		case "stock-0", "stock-1", "stock-2":
			if w == nil || w.OwnerTID == 0 {
				continue
			}
			want, owner = "waiting to lock Stock", w.Owner
			o := p.byTID(w.OwnerTID)
			if o == nil || o == t || !holds(o, "Stock") || holds(t, "Stock") {
				wrong += fmt.Sprintf("%q waits for %q, which does not hold it; ", t.Name, w.Owner)
			} else if o.DotNet.Changed || !slices.ContainsFunc(o.Frames, func(f Frame) bool { return f.Function == "Program.Inside" }) {
				continue // it is about to leave, or has just entered
			}
			waiting++
		}
		switch {
		case want == "" && w != nil && w.How == "waiting to lock":
			wrong += fmt.Sprintf("%q waits for %s; ", t.Name, w.Class)
		case want != "" && (w == nil || w.How+" "+w.Class != want || w.Owner != owner):
			wrong += fmt.Sprintf("%q waits for %+v, should be %s held by %q; ", t.Name, w, want, owner)
		}
	}
	if len(p.Deadlocks) != 1 || len(p.Deadlocks[0]) != 2 {
		wrong += fmt.Sprintf("the deadlocks are %v; ", p.Deadlocks)
	}
	return wrong, waiting == 2
}
