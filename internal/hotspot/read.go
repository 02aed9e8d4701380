package hotspot

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
)

// Hand-made stubs follow no frame layout: some push a few registers and publish no frame size, some
// align the stack and restore it from rbp, some do all of this in the middle. All of them return
// with the stack as it was. Therefore their code is read from the program counter to a return,
// which tells where the return address is at every instruction.

// maxReadings bounds how many places whose code was read are remembered.
const maxReadings = 1 << 14

// reading is a place in a blob.
type reading struct {
	blob, off uint32
}

// readings remembers the results of reading code; nil if there was none.
type readings struct {
	reader native.Reader
	rules  map[reading]*ehframe.Rule
}

// readRule reads the code of b from pc on.
func (vm *VM) readRule(b *blob, pc uint64) *ehframe.Rule {
	r := &vm.stepping.readings
	at := reading{b.id, uint32(pc - b.codeBegin)}
	rule, ok := r.rules[at]
	if ok {
		return rule
	}
	if r.rules == nil || len(r.rules) >= maxReadings {
		r.rules = make(map[reading]*ehframe.Rule)
	}
	if code := vm.codeOf(b); code != nil {
		tails := b.nm == nil || b.kind == blobNativeMethod && b.frameSize == 0
		rule = r.reader.Rule(code, b.codeBegin, pc, tails)
	}
	r.rules[at] = rule
	return rule
}

// stepByReading moves the Cursor to the caller of code in b by reading the code
// from pc on; false if that did not lead to a call.
func (vm *VM) stepByReading(c *walk.Cursor, b *blob, pc uint64) bool {
	if c.Regs.Arch != cpu.AMD64 {
		return false
	}
	rule := vm.readRule(b, pc)
	if rule == nil {
		return false
	}
	ra, _, ok := native.Caller(c, rule)
	if !ok || !vm.afterCall(c, ra) || !native.Follow(c, rule) {
		return false
	}
	c.LeafCallee = b.nm == nil
	if vm.inCodeCache(ra) {
		vm.stepping.prov = walk.Derived
		return true
	}
	c.Prov = max(c.Prov, walk.Derived)
	return true
}

// maxPushedFor bounds the bytes that compiled code pushes around a call without a safepoint.
const maxPushedFor = 256

// depth returns where the stack pointer is at pc in the body of a compiled method, relative to its
// place in the frame: C1 pushes the arguments of its type checks, intrinsics and collectors'
// barriers push registers, an epilogue takes the frame off. Adapters have no frame. The whole body
// is followed once.
func (vm *VM) depth(b *blob, pc uint64) native.Depth {
	body := b.frameComplete
	if b.kind == blobAdapter {
		body = b.codeBegin
	}
	if pc < body || pc >= b.codeEnd {
		return native.Depth{}
	}
	if !b.followed {
		code := vm.codeOf(b)
		b.followed = true
		if from := body - b.codeBegin; from < uint64(len(code)) {
			b.depths, b.followable = vm.stepping.readings.reader.Depths(code[from:])
		}
	}
	if !b.followable {
		return native.Depth{}
	}
	return b.depths.At(pc - body)
}

// pushed returns by how many bytes the stack pointer is below the frame's at pc in a compiled
// method, if that is the same each time.
func (vm *VM) pushed(b *blob, pc uint64) uint64 {
	switch d := vm.depth(b, pc); d.Kind {
	case native.DepthBytes:
		return uint64(max(d.Bytes, 0))
	case native.DepthUnknown:
	default:
		return 0
	}
	r := vm.readRule(b, pc)
	if r == nil || r.CFAReg != cpu.RSP || r.CFAExpr != nil {
		return 0
	}
	n := int64(r.CFAOff) - int64(b.frameSize)
	if n <= 0 || n > maxPushedFor || n&7 != 0 {
		return 0
	}
	return uint64(n)
}

// afterCall reports whether ra may be the return address of a call of a stub: in generated code
// that stubs are called from, or in C++ code after a call.
func (vm *VM) afterCall(c *walk.Cursor, ra uint64) bool {
	if vm.inCodeCache(ra) {
		return vm.codeRA(stripPC(c, ra))
	}
	// Nothing of a process that has just ended can be read any more.
	return c.AfterCall(ra) || ra > 1<<12 && c.Code(vm.interpLo, 1) == nil
}
