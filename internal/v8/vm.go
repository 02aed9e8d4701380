package v8

import (
	"strings"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Finder opens the V8s of processes, and reads each program's file once. It is used from one
// goroutine; its zero value is ready to use.
type Finder struct {
	files map[fileid.ID]*facts // nil: the file has no V8
}

// maxFiles bounds how many files a Finder remembers.
const maxFiles = 256

// VM is the V8 of one process: a walk.Stepper for its code. It is used from one goroutine.
type VM struct {
	*facts
	native *native.Stepper
	memory walk.Memory
	file   fileid.ID
	bias   uint64

	pages   map[uint64]bool // by address: whether they are V8's pages of code; false entries last one batch
	leaves  map[uint64]leaf // code that threads stopped in
	crooked map[uint64]bool // by the beginning of built-in functions: see frameless
	known   map[frameKey]uint64
	names   []name
	nameRef map[name]uint64
	heap    heap
}

// Open finds V8 in a process whose native code nat knows. The error is ErrNotV8 if it has no known
// V8. Only programs whose names suggest V8 are examined.
func (f *Finder) Open(p *target.Process, nat *native.Stepper) (*VM, error) {
	for _, m := range nat.Modules() {
		if !MayHold(m.Mapping) {
			continue
		}
		key := m.Mapping.ID()
		known, seen := f.files[key]
		if !seen {
			if file, err := m.Open(); err == nil {
				known, _ = readFacts(file)
				file.Close()
			}
			if f.files == nil || len(f.files) >= maxFiles {
				f.files = map[fileid.ID]*facts{}
			}
			f.files[key] = known
		}
		if known == nil {
			continue
		}
		if addr, ok := known.address(m.Mapping.Offset); ok {
			vm := &VM{facts: known, native: nat, memory: p.Memory(), file: key, bias: m.Mapping.Start - addr}
			vm.heap = newHeap(known, p.Memory())
			vm.BeginBatch()
			return vm, nil
		}
	}
	return nil, ErrNotV8
}

// MayHold reports whether a mapped file has a name like the programs and libraries that contain V8
// and publish what is needed. Examining all files would cost more than the rest of a recording.
func MayHold(m target.Mapping) bool {
	base := target.BaseName(m.Path)
	return m.FileBacked() && (strings.HasPrefix(base, "node") || strings.HasPrefix(base, "libnode"))
}

// Version returns V8's version.
func (vm *VM) Version() [3]int32 {
	return [3]int32{vm.ints["major"], vm.ints["minor"], vm.ints["build"]}
}

// BeginBatch forgets what may have changed since the last batch of samples.
func (vm *VM) BeginBatch() {
	for at, is := range vm.pages {
		if !is {
			delete(vm.pages, at)
		}
	}
	if vm.pages == nil || len(vm.pages) > 1<<14 {
		vm.pages = map[uint64]bool{}
	}
	if vm.leaves == nil {
		vm.crooked = map[uint64]bool{}
		vm.leaves, vm.known, vm.nameRef = map[uint64]leaf{}, map[frameKey]uint64{}, map[name]uint64{}
	}
	clear(vm.leaves)
	clear(vm.known)
}

// place is the function or page that an address of V8's code is in.
type place struct {
	ref     uint64 // of the native frame
	role    role
	builtin bool   // in the blob, and not generated
	start   uint64 // of the built-in function
}

// find returns the place of an address in V8's code; false if it is not V8's.
func (vm *VM) find(at uint64) (place, bool) {
	f, ok := vm.native.Frame(at, 0)
	if !ok {
		return place{}, false
	}
	modules := vm.native.Modules()
	i := f.Ref >> 32
	if i >= uint64(len(modules)) {
		return place{}, false
	}
	m := &modules[i].Mapping
	switch {
	case m.Inode == vm.file.Inode && m.Dev == vm.file.Dev && m.FileBacked():
		// The blob may be mapped twice: where the file has it, and near generated code.
		addr, ok := vm.address(at - m.Start + m.Offset)
		if !ok || addr < vm.blobStart || addr >= vm.blobEnd {
			return place{}, false
		}
		b := vm.builtin(addr)
		return place{f.Ref, b.role, true, at - (addr - b.start)}, true
	case m.Path == "":
		return place{ref: f.Ref}, vm.codePage(at)
	}
	return place{}, false
}

const (
	pageSize  = 256 << 10 // of V8's heap (src/common/globals.h, kPageSizeBits), which pages are aligned to
	pageWords = 24        // of a page's header that are looked at
)

// codePage reports whether an address lies in a page of V8's heap for code. A page begins with its
// size and a few pointers (src/heap/memory-chunk-layout.h). One of them leads to the space that it
// belongs to: an object of one of the classes of spaces for code, which begins with the address of
// that class's vtable. The position of that pointer has changed between versions, so all are tried;
// nothing else leads to such an object.
func (vm *VM) codePage(at uint64) bool {
	page := at &^ (pageSize - 1)
	if is, ok := vm.pages[page]; ok {
		return is
	}
	is := false
	if size, ok := vm.memory.Word(page); ok && size >= pageSize && size <= 1<<32 && size%4096 == 0 {
		for i := uint64(1); i < pageWords && !is; i++ {
			p, ok := vm.memory.Word(page + 8*i)
			if !ok || p < 4096 || p&7 != 0 {
				continue
			}
			if first, ok := vm.memory.Word(p); ok {
				for _, table := range vm.vtables {
					is = is || first == table+vm.bias
				}
			}
		}
	}
	vm.pages[page] = is
	return is
}

// Owns implements walk.Stepper.
func (vm *VM) Owns(pc uint64) bool {
	if !vm.native.Executable(pc) && !vm.native.Owns(pc) {
		return false
	}
	if _, ok := vm.find(pc); ok {
		return true
	}
	// A call may be the last instruction of a page.
	_, ok := vm.find(pc - 1)
	return ok
}
