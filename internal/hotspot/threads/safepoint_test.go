package threads

import (
	"encoding/binary"
	"testing"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
)

// FuzzSymbols scans broken symbol tables for the variables of the safepoint.
func FuzzSymbols(f *testing.F) {
	table := make([]byte, 3*vmstructs.SymbolSize)
	names := []byte("\x00_ZN20SafepointSynchronize6_stateE\x00_ZTV7VM_Halt\x00_ZTV")
	binary.LittleEndian.PutUint32(table, 1)
	binary.LittleEndian.PutUint64(table[8:], 0x1000)
	binary.LittleEndian.PutUint32(table[vmstructs.SymbolSize:], 35)
	binary.LittleEndian.PutUint64(table[vmstructs.SymbolSize+8:], 0x2000)
	binary.LittleEndian.PutUint32(table[2*vmstructs.SymbolSize:], 50)
	if v := scanSymbols(table, names, 16); v.state != 0x1010 || v.vtables[0x2020] != "VM_Halt" || len(v.vtables) != 1 {
		f.Fatalf("%+v", v)
	}
	f.Add(table, names)
	f.Fuzz(func(t *testing.T, symbols, names []byte) { scanSymbols(symbols, names, 0) })
}
