package hotspot

import (
	"runtime"
	"testing"
	"weak"

	"github.com/candid-profiler/candid/internal/fixture"
)

// VMs of the same library share what they publish, wherever it lies in each of them, and do not
// share it with another library's. Each further VM takes little memory.
func TestAlike(t *testing.T) {
	majors := fixture.JDKs(t, 8)
	major := majors[len(majors)-1]
	known := NewFinder()
	first := parkedProgram(t, major)
	second := startProgram(t, major, "Parked", "100")
	open := func(vm *VM, err error) *VM {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return vm
	}
	a, b := open(known.Open(first)), open(known.Open(second))
	if a.Published != b.Published || a.code.standing != b.code.standing {
		t.Error("two VMs of the same library have tables of their own")
	}
	alone := openVM(t, second)
	if alone.Published == b.Published {
		t.Error("tables are shared by VMs that have no Finder in common")
	}
	if got, want := b.Field("Abstract_VM_Version::_s_vm_release"), alone.Field("Abstract_VM_Version::_s_vm_release"); got != want || got.Addr == 0 {
		t.Errorf("a variable lies at %#x, alone at %#x", got.Addr, want.Addr)
	}
	for _, flag := range []string{"UseG1GC", "MaxHeapSize", "UseCompressedOops"} {
		got, ok := b.Flag(flag)
		if want, _ := alone.Flag(flag); !ok || got != want {
			t.Errorf("%s is %s, alone %s", flag, got, want)
		}
	}
	if len(majors) > 1 {
		other := open(known.Open(parkedProgram(t, majors[0])))
		if other.Published == a.Published {
			t.Error("VMs of different libraries share tables")
		}
	}

	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const n, each = 20, 400 << 10
	before := held()
	var vms []*VM
	for range n {
		vms = append(vms, open(known.Open(first)))
	}
	if grown := int64(held()) - int64(before); grown > n*each {
		t.Errorf("each of %d VMs takes %d bytes", n, grown/n)
	} else {
		t.Logf("each of %d VMs takes %d bytes", n, grown/n)
	}
	runtime.KeepAlive(vms)
	clear(vms)
	shared := weak.Make(a.Published)
	a, b = nil, nil
	if held(); shared.Value() != nil {
		t.Error("tables are kept of which there is no VM any more")
	}
	runtime.KeepAlive(known)
}
