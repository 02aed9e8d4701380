package hotspot

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/walk"
)

func TestStubSymbols(t *testing.T) {
	strs := []byte("\x00_ZN12StubRoutines16_jbyte_arraycopyE\x00_ZN12StubRoutines3x8610_some_maskE\x00_ZN12StubRoutines99_shortE\x00_ZN5OtherE\x00")
	sym := func(name string, typ byte, value, size uint64) []byte {
		i := 1
		for ; string(strs[i:i+len(name)]) != name; i++ {
		}
		b := binary.LittleEndian.AppendUint32(nil, uint32(i))
		b = append(b, typ, 0, 0, 0)
		b = binary.LittleEndian.AppendUint64(b, value)
		return binary.LittleEndian.AppendUint64(b, size)
	}
	var syms []byte
	syms = append(syms, sym("_ZN12StubRoutines16_jbyte_arraycopyE", 1, 0x100, 8)...)
	syms = append(syms, sym("_ZN12StubRoutines3x8610_some_maskE", 1, 0x108, 8)...)
	syms = append(syms, sym("_ZN12StubRoutines99_shortE", 1, 0x110, 8)...)           // a broken name
	syms = append(syms, sym("_ZN12StubRoutines16_jbyte_arraycopyE", 2, 0x118, 8)...) // a function
	syms = append(syms, sym("_ZN12StubRoutines16_jbyte_arraycopyE", 1, 0x120, 4)...) // no address
	syms = append(syms, sym("_ZN5OtherE", 1, 0x128, 8)...)
	got := stubSymbols(append(syms, 1, 2, 3), strs, 0x1000)
	want := []stubStart{{0x1100, "_jbyte_arraycopy"}, {0x1108, "_some_mask"}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func FuzzStubSymbols(f *testing.F) {
	f.Add(make([]byte, 48), []byte("_ZN12StubRoutines3x86E\x00"))
	f.Fuzz(func(t *testing.T, syms, strs []byte) { stubSymbols(syms, strs, 1) })
}

// The stubs of real VMs have names, and each lies at the address that its variable holds.
func TestStubNames(t *testing.T) {
	for _, major := range fixture.JDKs(t, 8) {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			vm := openVM(t, parkedProgram(t, major))
			vm.BeginBatch()
			all := vm.readStubs()
			named := 0
			for _, s := range all {
				b := vm.find(s.addr)
				f := walk.Frame{PC: s.addr + 1, Ref: uint64(b.id) << 32, Kind: walk.KindStub}
				if out := vm.Resolve(f, nil); len(out) != 1 || out[0].Function != "StubRoutines::"+s.name {
					t.Errorf("%s: %v", s.name, out)
				}
				named++
			}
			t.Logf("JDK %d: %d stubs named, all known: %v", major, named, vm.names.stubsAll)
			if named < 5 {
				t.Errorf("JDK %d: only %d stubs have names", major, named)
			}
			begin := time.Now()
			vm.names.stubVars = nil
			vm.readStubs()
			t.Logf("reading them took %v", time.Since(begin))
		})
	}
}
