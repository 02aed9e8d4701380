package hotspot

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/target"
)

// interpreterWords are the words in the VM that say where the interpreter's code is.
type interpreterWords struct {
	reqs     [3]target.Read
	was, now [3][8]byte
}

// same reports whether they are what they were when it was asked last.
func (w *interpreterWords) same(p *peek) bool {
	if w.reqs[0].Buf == nil || p.readV(w.reqs[:]) < len(w.reqs) {
		return false
	}
	same := w.was == w.now
	w.was = w.now
	return same
}

// interpreterRange reads where the template interpreter's code is.
func (vm *VM) interpreterRange() (lo, hi uint64, err error) {
	code, buffer, limit := vm.t.field("AbstractInterpreter::_code"), vm.t.field("StubQueue::_stub_buffer"), vm.t.field("StubQueue::_buffer_limit")
	queue, ok := vm.peek.static(code)
	if !ok || queue == 0 {
		return 0, 0, fmt.Errorf("the interpreter is not set up: %w", ErrNotReady)
	}
	base, ok1 := vm.peek.member(queue, buffer)
	size, ok2 := vm.peek.member(queue, limit)
	if !ok1 || !ok2 || base == 0 || size == 0 || size > maxReserved || base+size < base {
		return 0, 0, fmt.Errorf("the interpreter's code is not set up: %w", ErrNotReady)
	}
	w := &vm.interpWords
	w.reqs = [3]target.Read{
		{Addr: code.addr, Buf: w.now[0][:]}, {Addr: queue + buffer.offset, Buf: w.now[1][:buffer.width]}, {Addr: queue + limit.offset, Buf: w.now[2][:limit.width]},
	}
	return base, base + size, nil
}

// beginInterpreter looks whether the interpreter still ends where it did: it is
// given more room than it needs and, once it has been generated, gives the rest
// back, in which other code is put then. A VM may be looked at before that.
func (vm *VM) beginInterpreter() {
	if vm.interpWords.same(&vm.peek) {
		return
	}
	lo, hi, err := vm.interpreterRange()
	if err != nil {
		vm.interpWords.was = [3][8]byte{} // ask again
		return
	}
	if lo == vm.interpLo && hi == vm.interpHi {
		return
	}
	vm.interpLo, vm.interpHi = lo, hi
	clear(vm.stepping.pcs.slots)
	clear(vm.stepping.stays[:])
	clear(vm.stepping.catches[:])
	vm.names.codelets = nil
}
