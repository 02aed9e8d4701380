package nativeimage

import (
	"errors"

	"github.com/candid-profiler/candid/internal/fileblocks"
	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/target"
)

// ErrNotImage means that a process maps no native image.
var ErrNotImage = errors.New("no native image")

// Finder opens the native images of processes, and reads each file once. It is used from one
// goroutine; its zero value is ready to use.
type Finder struct {
	files map[fileid.ID]*known
}

// known is what is known of a file. Its image is nil if it has none whose tables are known.
type known struct {
	*image
	native bool // it is a native image
	text   span // addresses of the file
	progs  []segment
	file   target.File // stays open, for names; nil without an image
}

// segment is a part of a file that is mapped.
type segment struct{ offset, size, addr uint64 }

const (
	maxFiles = 512 // that a Finder remembers
	// minCode is the size in bytes of the smallest mapping of code that is looked into: a program
	// that prints one line has four million bytes of it.
	minCode = 1 << 20
	// initCode is the size of a mapping that holds only the .init section, which some linkers put
	// into a segment of its own (the image of GraalVM CE 24 that was tried). A module is known by the
	// first of its mappings.
	initCode = 4096
	// maxImages bounds the images of one process.
	maxImages = 4
)

// May reports whether a mapping may be of a native image's code, by what is known of its file.
func (f *Finder) May(m target.Mapping) bool {
	if size := m.End - m.Start; !m.FileBacked() || size < minCode && size > initCode {
		return false
	}
	k, seen := f.files[m.ID()]
	return !seen || k.native
}

// Open finds the native images of a process, whose code nat knows. The error is ErrNotImage if
// there is none.
func (f *Finder) Open(p *target.Process, nat *native.Stepper) (*VM, error) {
	vm := &VM{native: nat, memory: p.Memory(), process: p, unknown: Guesser{native: nat}}
	for _, m := range nat.Modules() {
		if !f.May(m.Mapping) || len(vm.images) == maxImages {
			continue
		}
		k := f.learn(m)
		for _, s := range k.progs {
			off := m.Mapping.Offset - s.offset
			if off >= s.size {
				continue
			}
			if bias := m.Mapping.Start - s.addr - off; k.image != nil {
				vm.add(k, bias)
			} else {
				vm.unknown.add(span{k.text.start + bias, k.text.end + bias})
			}
			break
		}
	}
	if len(vm.images) == 0 && len(vm.unknown.code) == 0 {
		return nil, ErrNotImage
	}
	vm.reset()
	return vm, nil
}

// learn reads a module's file, unless that was done before.
func (f *Finder) learn(m *native.Module) *known {
	key := m.Mapping.ID()
	if k, ok := f.files[key]; ok {
		return k
	}
	k := &known{}
	if file, err := m.Open(); err == nil {
		if k.read(file); k.image == nil {
			file.Close()
		}
	}
	if f.files == nil || len(f.files) >= maxFiles {
		f.files = map[fileid.ID]*known{}
	}
	f.files[key] = k
	return k
}

// read reads a file, which stays open if it has an image.
func (k *known) read(file target.File) {
	p, ok := openProgram(fileblocks.Open(file))
	if !ok {
		return
	}
	k.native, k.text = true, p.text
	for _, h := range p.progs {
		// A mapping begins at the page that the segment begins in.
		if lead := h.Vaddr % 4096; lead <= h.Off {
			k.progs = append(k.progs, segment{h.Off - lead, h.Filesz + lead, h.Vaddr - lead})
		}
	}
	im, ok := find(p, p.heap, p.text)
	if !ok {
		return
	}
	k.image, k.file = im, file
	im.version = Version(file)
}

// Version returns what the image says of the release that it was made with, "GraalVM CE 25.0.2"; ""
// if it does not say.
func (vm *VM) Version() string {
	for i := range vm.images {
		if v := vm.images[i].version; v != "" {
			return v
		}
	}
	return ""
}

// Notes returns what is not known of the process's images, and why.
func (vm *VM) Notes() []string {
	if len(vm.unknown.code) > 0 {
		return []string{"its tables of frames are of a release that is not known, so callers of its Java code are guesses and its methods have no names"}
	}
	for i := range vm.images {
		if vm.images[i].format == nil {
			return []string{"its frames are known, but not its methods: they are described in a way that is not known"}
		}
	}
	return nil
}

// Unknown returns the stepper for images whose tables are not known; nil if there are none.
func (vm *VM) Unknown() *Guesser {
	if len(vm.unknown.code) == 0 {
		return nil
	}
	return &vm.unknown
}
