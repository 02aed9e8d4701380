package hotspot

import (
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
)

// Hand-made stubs keep to no frame layout: some push a few registers and publish
// no frame size, some align the stack and come back by rbp, some do all of this
// in the middle. What they all do is to return with the stack as it was. So
// their code is read from the program counter to a return, which tells where the
// return address is from every instruction of it.

// maxReadings bounds the places whose code was read that are remembered.
const maxReadings = 1 << 14

// reading is a place in a blob.
type reading struct {
	blob, off uint32
}

// readings remembers what reading code gave; nil where it gave nothing.
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
		rule = r.reader.Rule(code, b.codeBegin, pc, b.nm == nil)
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

// maxPushedFor bounds what compiled code pushes around a call without a safepoint,
// in bytes.
const maxPushedFor = 256

// pushed says by how many bytes the stack pointer is below the frame's at pc in a
// compiled method, by reading the code: C1 pushes the arguments of its type
// checks, intrinsics push registers.
func (vm *VM) pushed(b *blob, pc uint64) uint64 {
	if !vm.pushes(b, pc) {
		return 0
	}
	if b.depths != nil {
		return b.depths.At(pc - b.frameComplete)
	}
	if n := vm.popsAt(b, pc); n != 0 {
		return n
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

// popsAt says how many bytes the instructions at pc pop at once: C1 takes the
// arguments of its type checks off so. An epilogue pops rbp only.
func (vm *VM) popsAt(b *blob, pc uint64) uint64 {
	code := vm.codeOf(b)
	var n uint64
	for i := int(pc - b.codeBegin); i < len(code); i++ {
		if code[i] == 0x41 && i+1 < len(code) {
			i++
		} else if code[i] == 0x5D {
			break
		}
		if code[i]&0xF8 != 0x58 {
			break
		}
		n += 8
	}
	return n
}

// pushes says whether the stack pointer may be lower at pc than elsewhere in the
// body of a compiled method. Reading the code costs some 20 µs, and hardly any
// instruction needs it.
func (vm *VM) pushes(b *blob, pc uint64) bool {
	body := b.frameComplete
	if !b.swept {
		b.swept = true
		from := body - b.codeBegin
		if code := vm.codeOf(b); from < uint64(len(code)) {
			if end := min(uint64(len(code)), b.nm.stubBegin-b.codeBegin); from < end {
				var ok bool
				if b.depths, ok = vm.stepping.readings.reader.Depths(code[from:end]); !ok {
					b.pushed = vm.stepping.readings.reader.PushSpans(code[from:end])
				}
			}
		}
	}
	if b.depths != nil {
		return pc >= body && b.depths.At(pc-body) > 0
	}
	return len(b.pushed) > 0 && pc >= body && b.pushed.Inside(pc-body)
}

// afterCall says whether ra may be where a call of a stub returns to: generated
// code that is called from, or C++ code behind a call.
func (vm *VM) afterCall(c *walk.Cursor, ra uint64) bool {
	if vm.inCodeCache(ra) {
		return vm.codeRA(stripPC(c, ra))
	}
	// Of a process that has just ended nothing can be read any more.
	return c.AfterCall(ra) || ra > 1<<12 && c.Code(vm.interpLo, 1) == nil
}
