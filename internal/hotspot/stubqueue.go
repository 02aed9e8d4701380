package hotspot

import "fmt"

// interpreterRange reads where the template interpreter's code is.
func (vm *VM) interpreterRange() (lo, hi uint64, err error) {
	t := vm.t
	queue, ok := vm.peek.static(t.field("AbstractInterpreter::_code"))
	if !ok || queue == 0 {
		return 0, 0, fmt.Errorf("the interpreter is not set up: %w", ErrNotReady)
	}
	base, ok1 := vm.peek.member(queue, t.field("StubQueue::_stub_buffer"))
	size, ok2 := vm.peek.member(queue, t.field("StubQueue::_buffer_limit"))
	if !ok1 || !ok2 || base == 0 || size == 0 || size > maxReserved || base+size < base {
		return 0, 0, fmt.Errorf("the interpreter's code is not set up: %w", ErrNotReady)
	}
	return base, base + size, nil
}

// beginInterpreter looks whether the interpreter still ends where it did: it is
// given more room than it needs and, once it has been generated, gives the rest
// back, in which other code is put then. A VM may be looked at before that.
func (vm *VM) beginInterpreter() {
	lo, hi, err := vm.interpreterRange()
	if err != nil || lo == vm.interpLo && hi == vm.interpHi {
		return
	}
	vm.interpLo, vm.interpHi = lo, hi
	clear(vm.stepping.pcs.slots)
	clear(vm.stepping.stays[:])
	vm.names.codelets = nil
}
