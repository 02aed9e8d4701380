package pdb

import "unsafe"

// Memory returns about how many bytes of memory f takes.
func (f *File) Memory() int {
	n := len(f.names) + len(f.places)*int(unsafe.Sizeof(contribution{})) + len(f.modules)*int(unsafe.Sizeof(module{}))
	for i := range f.c.streams {
		n += int(unsafe.Sizeof(stream{})) + len(f.c.streams[i].blocks)
	}
	for _, r := range []*records{&f.types, &f.ids} {
		n += len(r.b) + 4*cap(r.at)
	}
	return n + f.parsed
}

// Forget frees what look-ups have read of modules, types and ids. The next ones read it again.
func (f *File) Forget() {
	for i := range f.modules {
		m := &f.modules[i]
		*m = module{stream: m.stream, symbols: m.symbols, old: m.old, lines: m.lines}
	}
	f.types, f.ids, f.parsed = records{}, records{}, 0
}
