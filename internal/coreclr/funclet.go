package coreclr

import "github.com/candid-profiler/candid/internal/walk"

var _ walk.Joiner = (*VM)(nil)

// Joined implements walk.Joiner. A funclet is called by the exception handling of the runtime, or by
// the method that it belongs to: at the end of a try block that was left without an exception. Nothing
// else of the method's code calls it, so a funclet that returns into its own method is of the same
// call.
func (vm *VM) Joined(inner, outer *walk.Frame) bool {
	id := inner.Ref >> 32
	if id == 0 || id != outer.Ref>>32 || id >= uint64(len(vm.code.all)) {
		return false
	}
	c, pc := vm.code.all[id], inner.PC
	if inner.Flags&walk.ReturnAddress != 0 {
		pc--
	}
	for i := range c.parts {
		if p := &c.parts[i]; p.Contains(uint32(pc - c.base)) {
			return p.funclet
		}
	}
	return false
}
