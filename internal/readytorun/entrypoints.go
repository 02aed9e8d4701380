package readytorun

// EntryPoints returns the methods that a table of entry points (READYTORUN_SECTION_METHODDEF_ENTRYPOINTS)
// has code for: their rows in MethodDef, by the index of the function that is their body. Rows above
// rows and functions from functions on are left out. A damaged table has fewer methods.
func EntryPoints(table []byte, rows, functions uint32) map[uint32]uint32 {
	out := map[uint32]uint32{}
	a := openNativeArray(table)
	for i := range min(a.count, rows) {
		at, ok := a.element(i)
		if !ok {
			continue
		}
		if f, ok := function(table, at); ok && f < functions {
			out[f] = i + 1
		}
	}
	return out
}

// InstanceEntryPoints returns the instances of generic methods, and of methods of generic types, that a table of
// them (READYTORUN_SECTION_INSTANCE_ENTRYPOINTS) has code for: their signatures, by the index of the function that
// is their body. skip returns what follows a signature. Signatures are parts of table, and followed by other things.
func InstanceEntryPoints(table []byte, functions uint32, skip func(b []byte) (rest []byte, ok bool)) map[uint32][]byte {
	out := map[uint32][]byte{}
	for at := range hashEntries(table) {
		rest, ok := skip(table[at:])
		if !ok {
			continue
		}
		if f, ok := function(table, uint32(len(table)-len(rest))); ok && f < functions {
			out[f] = table[at:]
		}
	}
	return out
}

// function reads the index of a method's body. A second bit is below it if something is to be done before the
// method runs for the first time.
func function(table []byte, at uint32) (uint32, bool) {
	id, _, ok := nativeUnsigned(table, at)
	if id&1 != 0 {
		return id >> 2, ok
	}
	return id >> 1, ok
}
