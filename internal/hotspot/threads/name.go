package threads

// threadName reads the name of a thread's object; ok is false unless the object
// points back to the thread.
func (ts *Threads) threadName(t Thread) (string, bool) {
	ts.heap.Refresh()
	oop, ok := ts.heap.Handle(t.object)
	if !ok {
		return "", false
	}
	f, ok := ts.heap.FieldOf(oop, "eetop")
	if !ok {
		return "", false
	}
	if back, ok := ts.vm.Mem.U64(oop + f.Offset); !ok || back != t.Addr {
		return "", false
	}
	f, ok = ts.heap.FieldOf(oop, "name")
	if !ok {
		return "", false
	}
	// JDK 8 before about update 40 held the name as char[].
	at, ok := ts.heap.Reference(oop + f.Offset)
	if !ok {
		return "", false
	}
	if f.Signature == "[C" {
		return ts.heap.Chars(at, false)
	}
	return ts.heap.JavaString(at)
}
