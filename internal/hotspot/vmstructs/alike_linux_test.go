package vmstructs

import (
	"os/exec"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/target"
)

// VMs of the same library share the table of their flags; another library has its own.
func TestFlagsAreShared(t *testing.T) {
	majors := fixture.JDKs(t, 8)
	classes := fixture.Classes(t, 8, "-g", "../testdata/Parked.java")
	known := NewFinder()
	open := func(major int) *VM {
		t.Helper()
		started := fixture.Start(t, exec.Command(fixture.JDKTool(t, major, "java"), "-Xmx64m", "-cp", classes, "Parked"))
		started.Await("ready")
		p, err := target.Open(started.PID())
		if err != nil {
			t.Fatal(err) // it is a child
		}
		t.Cleanup(func() { p.Close() })
		vm, _, err := Open(p, known)
		if err != nil {
			t.Fatal(err)
		}
		return vm
	}
	newest := majors[len(majors)-1]
	a, b := open(newest), open(newest)
	if a.Published != b.Published || a.flags != b.flags {
		t.Error("two VMs of the same library have tables of their own")
	}
	if len(majors) > 1 {
		if other := open(majors[0]); other.Published == a.Published || other.flags == a.flags {
			t.Error("VMs of different libraries share tables")
		}
	}
}
