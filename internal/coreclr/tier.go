package coreclr

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/walk"
)

// Values of NativeCodeVersion::OptimizationTier (src/coreclr/vm/codeversion.h), which the runtime
// does not change because event traces have them.
var tiers = [...]walk.Kind{
	0: walk.KindTier0,
	1: walk.KindTier1,
	2: walk.KindOSR,
	3: walk.KindTier1, // optimized at once
	4: walk.KindInstrumented,
	5: walk.KindInstrumented,
}

// eligible is the flag of a MethodDesc whose code may have several versions
// (vm/method.hpp, enum_flag3_IsEligibleForTieredCompilation).
const eligible = 0x8000

// maxVersions bounds the versions of one method's code.
const maxVersions = 256

// kindOf returns the kind of a method's code.
func (vm *VM) kindOf(c *code) walk.Kind {
	if c.kind == walk.KindUnknown {
		c.kind = vm.tierOf(c)
	}
	return c.kind
}

// tierOf finds out by which tier of the compiler code was made. Versions of a method's code but the
// first are in a list that its MethodDesc leads to since .NET 9. The first one is Tier-0's if there
// can be others, and otherwise fully optimized.
func (vm *VM) tierOf(c *code) walk.Kind {
	if c.image != nil {
		return walk.KindReadyToRun
	}
	l := &vm.lay
	d, ok := vm.methodDesc(c.method)
	if !ok || l.code.data == 0 {
		return walk.KindCompiled
	}
	if d.kind == descDynamic {
		return walk.KindTier1 // always optimized, and never compiled again
	}
	data, ok := vm.mem.Word(c.method + l.code.data)
	if !ok {
		return walk.KindCompiled
	}
	if state, ok := vm.mem.Word(data + l.code.state); ok && state != 0 && data != 0 {
		node, _ := vm.mem.Word(state + l.code.first)
		for n := 0; node != 0 && n < maxVersions; n++ {
			code, ok1 := vm.mem.Word(node + l.nodes.code)
			method, ok2 := vm.mem.Word(node + l.nodes.method)
			if !ok1 || !ok2 || method != c.method {
				return walk.KindCompiled
			}
			var b [4]byte
			if code == c.start && vm.mem.Bytes(node+l.nodes.tier, b[:]) {
				if t := binary.LittleEndian.Uint32(b[:]); t < uint32(len(tiers)) {
					return tiers[t]
				}
				return walk.KindCompiled
			}
			node, _ = vm.mem.Word(node + l.nodes.next)
		}
	}
	switch {
	case d.flags3&eligible == 0:
		return walk.KindTier1
	case vm.allocatesStack(c):
		// The compiler cannot replace such code while it runs a loop, so it may have optimized it at
		// once.
		return walk.KindCompiled
	}
	return walk.KindTier0
}

// allocatesStack reports whether a method's frame has no fixed size: it has a register for the
// frame.
func (vm *VM) allocatesStack(c *code) bool {
	var b [4]byte
	if len(c.parts) == 0 || !vm.mem.Bytes(c.base+uint64(c.parts[0].Unwind), b[:]) {
		return true
	}
	return b[3]&15 != 0
}
