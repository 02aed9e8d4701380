package hotspot

// threadName reads the name of a thread's object; ok is false unless the object
// points back to the thread.
func (vm *VM) threadName(t javaThread) (string, bool) {
	vm.heap.Refresh()
	oop, ok := vm.heap.Handle(t.object)
	if !ok {
		return "", false
	}
	f, ok := vm.heap.FieldOf(oop, "eetop")
	if !ok {
		return "", false
	}
	if back, ok := vm.Mem.U64(oop + f.Offset); !ok || back != t.addr {
		return "", false
	}
	f, ok = vm.heap.FieldOf(oop, "name")
	if !ok {
		return "", false
	}
	// JDK 8 before about update 40 held the name as char[].
	at, ok := vm.heap.Reference(oop + f.Offset)
	if !ok {
		return "", false
	}
	if f.Signature == "[C" {
		return vm.heap.Chars(at, false)
	}
	return vm.heap.JavaString(at)
}
