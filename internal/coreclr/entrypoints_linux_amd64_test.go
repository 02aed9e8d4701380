package coreclr_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/coreclr"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestNamesByImage compares the names that the framework's file gives its methods with those that the
// runtime knows, and names methods of a process that has ended.
func TestNamesByImage(t *testing.T) {
	program := fixture.Start(t, fixture.DotNetCommand(t, 9, fixture.CSharp(t, 9, "testdata/Deep.cs")))
	program.Await("ready")
	p, err := attach.Open(program.PID(), native.NewFiles())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	vm := p.Runtimes[0].Stepper().(*coreclr.VM)
	framework := frameworkCode(t, p.Target)
	p.BeginBatch()
	same, unlisted, different := vm.ImageNames(framework.Start)
	t.Logf("%d names are the same, %d methods are not listed", same, unlisted)
	if len(different) > 0 || same < 100 || unlisted > same/10 {
		t.Errorf("of %d methods that have run %d are not listed, %d have other names: %q", same+unlisted+len(different), unlisted, len(different), different[:min(10, len(different))])
	}
	// Code that is looked at for the first time when the process has ended.
	program.Kill()
	p.Target.Memory().Invalidate()
	p.BeginBatch()
	kinds := map[string]int{}
	for pc := framework.Start + 64; pc < framework.End; pc += (framework.End - framework.Start) / 5000 {
		if !vm.Owns(pc) {
			continue
		}
		st := walk.Stack{}
		vm.Step(&walk.Cursor{Stack: &st, Mem: p.Target.Memory(), Leaf: true, Regs: cpu.Registers{Arch: cpu.AMD64, PC: pc}})
		if len(st.Frames) == 0 {
			kinds["no frame"]++
			continue
		}
		f := vm.Resolve(st.Frames[0], nil)[0]
		switch {
		case f.NoName:
			kinds["no name"]++
		case strings.Contains(f.Function, "."):
			kinds["named"]++
		default:
			kinds[fmt.Sprintf("%q", f.Function)]++
		}
	}
	t.Log(kinds)
	// Handlers have no entry in the list.
	if kinds["named"] < 1000 || kinds["no name"] > kinds["named"]/20 {
		t.Errorf("methods of a process that has ended: %v", kinds)
	}
}

// frameworkCode returns the mapping of the framework's largest assembly that is executable.
func frameworkCode(t *testing.T, p *target.Process) target.Mapping {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		maps, err := p.Mappings()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range maps {
			if m.Perm&target.PermExec != 0 && strings.HasSuffix(m.Path, "/System.Private.CoreLib.dll") {
				return m
			}
		}
	}
	t.Fatal("System.Private.CoreLib is not mapped")
	return target.Mapping{}
}
