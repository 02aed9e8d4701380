package coreclr

// ImageNames compares the names that the runtime's own structures and an image's file give the methods
// that have run of the image whose code is at an address. unlisted counts methods that the file does not
// list.
func (vm *VM) ImageNames(at uint64) (same, unlisted int, different [][2]string) {
	s := vm.sectionOf(at)
	if s == nil || s.kind != image {
		return 0, 0, nil
	}
	r := vm.readyOf(s)
	if r == nil {
		return 0, 0, nil
	}
	for i := range r.count {
		f, ok := vm.function(r, i)
		if !ok {
			continue
		}
		method, ok := vm.preparedMethod(r, r.base+uint64(f.Begin))
		if !ok {
			continue
		}
		c := &code{start: r.base + uint64(f.Begin), image: r}
		byFile, byMemory := named{function: unknownMethod}, named{function: unknownMethod}
		vm.nameByImage(&byFile, c)
		if d, ok := vm.methodDesc(method); ok {
			vm.nameMethod(&byMemory, d)
		}
		switch {
		case byFile.function == unknownMethod:
			unlisted++
		case byFile.function == byMemory.function && byFile.raw == byMemory.raw && byFile.signature == byMemory.signature:
			same++
		default:
			different = append(different, [2]string{byFile.function + byFile.signature, byMemory.function + byMemory.signature})
		}
	}
	return same, unlisted, different
}
