package record

import (
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// One place in a method is one frame, wherever it was compiled.
func TestInlinedAddresses(t *testing.T) {
	b := profile.NewBuilder()
	at := func(kind walk.Kind, addr uint64) uint32 {
		return b.Frame(profileFrame(b, &symbol.Frame{Function: "java.util.HashMap.getNode", Line: 579, BCI: 145, Kind: kind, Addr: addr}, &walk.Frame{}))
	}
	for kind := range walk.NumKinds {
		one := at(kind, 0x7f0000001000) == at(kind, 0x7f0000002000)
		if code := kind == walk.KindNative || kind == walk.KindKernel || kind == walk.KindAOT || kind == walk.KindUnknown; one == code {
			t.Errorf("kind %s: one frame: %t", profile.KindName(kind), one)
		}
	}
}
