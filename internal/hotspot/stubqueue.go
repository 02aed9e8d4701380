package hotspot

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// interpreterWords are the words in the VM that hold the bounds of the interpreter's code.
type interpreterWords struct {
	reqs     [3]target.Read
	was, now [3][8]byte
}

// same reports whether they are unchanged since the last call. reqs are w.reqs, which were read.
func (w *interpreterWords) same(reqs []target.Read) bool {
	for i := range reqs {
		if len(reqs[i].Buf) == 0 || !reqs[i].OK {
			return false
		}
	}
	same := w.was == w.now
	w.was = w.now
	return same
}

// interpreterRange reads the bounds of the template interpreter's code.
func (vm *VM) interpreterRange() (lo, hi uint64, err error) {
	code, buffer, limit := vm.Field("AbstractInterpreter::_code"), vm.Field("StubQueue::_stub_buffer"), vm.Field("StubQueue::_buffer_limit")
	queue, ok := vm.Mem.Static(code)
	if !ok || queue == 0 {
		return 0, 0, fmt.Errorf("the interpreter is not set up: %w", vmstructs.ErrNotReady)
	}
	base, ok1 := vm.Mem.Member(queue, buffer)
	size, ok2 := vm.Mem.Member(queue, limit)
	if !ok1 || !ok2 || base == 0 || size == 0 || size > maxReserved || base+size < base {
		return 0, 0, fmt.Errorf("the interpreter's code is not set up: %w", vmstructs.ErrNotReady)
	}
	w := &vm.interpWords
	w.reqs = [3]target.Read{
		{Addr: code.Addr, Buf: w.now[0][:]}, {Addr: queue + buffer.Offset, Buf: w.now[1][:buffer.Width]}, {Addr: queue + limit.Offset, Buf: w.now[2][:limit.Width]},
	}
	return base, base + size, nil
}

// beginInterpreter checks whether the end of the interpreter has moved. The interpreter is given
// more memory than it needs and, once it has been generated, returns the rest, in which other code
// is put then. A VM may be opened before that. reqs are vm.interpWords.reqs, which were read.
func (vm *VM) beginInterpreter(reqs []target.Read) {
	if vm.interpWords.same(reqs) {
		return
	}
	lo, hi, err := vm.interpreterRange()
	if err != nil {
		vm.interpWords.was = [3][8]byte{} // read them again
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
