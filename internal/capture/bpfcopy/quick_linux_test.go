package bpfcopy

import (
	"errors"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Everything that candid loads is loaded without the library's way, which is for kernels that
// nobody has tried.
func TestQuick(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil || !permitted() {
		t.Skip("BPF is not permitted here, or the kernel does not describe itself")
	}
	for name, read := range map[string]func() (*ebpf.CollectionSpec, error){"capture": loadCapture, "ticks": loadTicks, "offcpu": loadOffcpu, "probe": loadProbe} {
		spec, err := read()
		if err != nil {
			t.Fatal(err)
		}
		if err := configure(spec, capture.Options{}, 1<<20); err != nil {
			t.Fatal(err)
		}
		coll, err := quickCollection(spec, nil)
		if errors.Is(err, errNoFunction) || errors.Is(err, unix.EPERM) {
			t.Skip(err)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for name := range spec.Programs {
			if p := coll.Programs[name]; p == nil {
				t.Errorf("%s was not loaded", name)
			}
		}
		coll.Close()
	}
}

// The reduced set of kernel types leads to the same fields as all of them would.
func TestSameFields(t *testing.T) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		t.Skip(err)
	}
	for name, read := range map[string]func() (*ebpf.CollectionSpec, error){"capture": loadCapture, "ticks": loadTicks, "offcpu": loadOffcpu, "probe": loadProbe} {
		spec, err := read()
		if err != nil {
			t.Fatal(err)
		}
		types, err := readKernelTypes(spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range spec.Programs {
			var relos []*btf.CORERelocation
			for i := range p.Instructions {
				if relo := btf.CORERelocationMetadata(&p.Instructions[i]); relo != nil {
					relos = append(relos, relo)
				}
			}
			id := func(btf.Type) (btf.TypeID, error) { return 1, nil }
			want, err := btf.CORERelocate(relos, []*btf.Spec{kernel}, spec.ByteOrder, id)
			if err != nil {
				t.Fatal(err)
			}
			got, err := btf.CORERelocate(relos, []*btf.Spec{types.fields}, spec.ByteOrder, id)
			if err != nil {
				t.Fatal(err)
			}
			for i := range relos {
				if got[i].String() != want[i].String() {
					t.Errorf("%s, %s, %s: %s, want %s", name, p.Name, relos[i], &got[i], &want[i])
				}
			}
			if len(relos) == 0 {
				t.Errorf("%s uses no fields of the kernel's", p.Name)
			}
		}
	}
}
