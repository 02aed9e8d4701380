package coreclr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/winunwind"
)

// hold finds the file of an image and keeps it open: samples of the last milliseconds of a process are
// walked when its memory is gone, and code that ran there for the first time is known from its file only.
func (vm *VM) hold(r *ready) {
	if vm.files.Hold == nil || vm.native == nil {
		return
	}
	var code [winunwind.FunctionSize]byte
	if !vm.mem.Bytes(r.functions, code[:]) {
		return
	}
	first := r.base + uint64(winunwind.ParseFunction(code[:]).Begin)
	f, ok := vm.native.Frame(first, 0)
	if !ok || f.Kind == walk.KindUnknown {
		return
	}
	m, _, ok := vm.native.Locate(f)
	if !ok || m.Mapping.Start < r.base {
		return
	}
	img, err := vm.peAt(r.base)
	if err != nil {
		return
	}
	const page = 4096
	for _, s := range img.sections {
		// A single-file program has its assemblies somewhere in its file.
		raw := uint64(s.raw &^ (page - 1))
		if uint64(s.rva&^(page-1)) != m.Mapping.Start-r.base || m.Mapping.Offset < raw {
			continue
		}
		file, err := vm.files.Hold(m.Mapping)
		if err != nil {
			return
		}
		held := *img
		held.mem, held.base, held.flat = &fileMemory{file}, m.Mapping.Offset-raw, true
		r.file = &held
		if !vm.sameFunctions(r) {
			r.file = nil
			return
		}
		r.mem = &imageMemory{vm.mem, r}
		return
	}
}

// sameFunctions reports whether the table of functions in the file is that in memory, by its ends.
func (vm *VM) sameFunctions(r *ready) bool {
	for _, i := range []uint32{0, r.count / 2, r.count - 1} {
		var here, there [winunwind.FunctionSize]byte
		at := r.functions + uint64(i)*winunwind.FunctionSize
		if !vm.mem.Bytes(at, here[:]) || !r.fromFile(at, there[:]) || !bytes.Equal(here[:], there[:]) {
			return false
		}
	}
	return true
}

// fromFile reads what the file has for an address of the image.
func (r *ready) fromFile(addr uint64, p []byte) bool {
	if r.file == nil || addr < r.base || addr-r.base > 1<<32-1 {
		return false
	}
	rva := uint32(addr - r.base)
	for _, s := range r.file.sections {
		if rva >= s.rva && rva-s.rva < s.rawSize && uint64(len(p)) <= uint64(s.rawSize-(rva-s.rva)) {
			return r.file.mem.Bytes(r.file.base+uint64(s.raw)+uint64(rva-s.rva), p)
		}
	}
	return false
}

// imageMemory is the memory of a process in which what cannot be read of an image is read from its
// file. It is only for what never changes in memory: code, unwind information and tables of functions.
type imageMemory struct {
	memory
	r *ready
}

func (m *imageMemory) Bytes(addr uint64, p []byte) bool {
	return m.memory.Bytes(addr, p) || m.r.fromFile(addr, p)
}

// fileMemory is a file as if it were memory from address 0 on.
type fileMemory struct{ io.ReaderAt }

func (f *fileMemory) Bytes(at uint64, p []byte) bool {
	if at > 1<<62 {
		return false
	}
	n, _ := f.ReaderAt.ReadAt(p, int64(at))
	return n == len(p)
}

func (f *fileMemory) Word(at uint64) (uint64, bool) {
	var b [8]byte
	ok := f.Bytes(at, b[:])
	return binary.LittleEndian.Uint64(b[:]), ok
}

// ReadAt implements target.Reader.
func (f *fileMemory) ReadAt(p []byte, at uint64) error {
	if !f.Bytes(at, p) {
		return fmt.Errorf("read %d bytes at %#x of an assembly's file: %w", len(p), at, target.ErrMemory)
	}
	return nil
}
