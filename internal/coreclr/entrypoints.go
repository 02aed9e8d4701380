package coreclr

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/climeta"
	"github.com/candid-profiler/candid/internal/readytorun"
)

// entryPoints are the methods of an image by the functions of their code, as the image's file lists
// them. A process that has ended leaves its files: what the runtime's own structures said is gone then.
type entryPoints struct {
	module *module
	// By the index of a method's body among the functions: the row of MethodDef, or the signature of an
	// instance of a generic method.
	rows      map[uint32]uint32
	instances map[uint32][]byte
}

// An image's header (docs/design/coreclr/botr/readytorun-format.md).
const (
	readySignature   = 0x00525452 // "RTR"
	readyHeader      = 16         // bytes before the list of sections
	readySection     = 12         // bytes of an entry of the list
	readyEntryPoints = 103        // READYTORUN_SECTION_METHODDEF_ENTRYPOINTS
	readyInstances   = 109        // READYTORUN_SECTION_INSTANCE_ENTRYPOINTS
	maxReadySections = 256
	maxEntryPoints   = 1 << 25 // bytes of the table
)

// entryPointsOf returns the table of an image. It has no rows if it cannot be read, and in a composite
// image, which is made of several assemblies.
func (vm *VM) entryPointsOf(r *ready) *entryPoints {
	if r.entries != nil {
		return r.entries
	}
	r.entries = &entryPoints{}
	img := r.file
	if img == nil {
		var err error
		if img, err = vm.peAt(r.base); err != nil {
			return r.entries
		}
	}
	meta, err := img.metadata()
	if err != nil {
		return r.entries
	}
	table, ok := img.readySection(readyEntryPoints)
	if !ok {
		return r.entries
	}
	r.entries.module = &module{meta: meta, image: img}
	r.entries.rows = readytorun.EntryPoints(table, meta.Rows(climeta.MethodDef), r.count)
	if table, ok := img.readySection(readyInstances); ok {
		r.entries.instances = readytorun.InstanceEntryPoints(table, r.count, climeta.SkipInstance)
	}
	return r.entries
}

// readySection returns the bytes of a section of an image that was compiled ahead of time.
func (img *peImage) readySection(kind uint32) ([]byte, bool) {
	le := binary.LittleEndian
	var cli [72]byte // its last but one entry is the native header (ECMA-335 II.25.3.3)
	if at := img.address(img.cli[0]); at == 0 || !img.mem.Bytes(at, cli[:]) {
		return nil, false
	}
	var h [readyHeader]byte
	at := img.address(le.Uint32(cli[64:]))
	if at == 0 || !img.mem.Bytes(at, h[:]) || le.Uint32(h[:]) != readySignature {
		return nil, false
	}
	for i := range uint64(min(le.Uint32(h[12:]), maxReadySections)) {
		var s [readySection]byte
		if !img.mem.Bytes(at+readyHeader+readySection*i, s[:]) {
			return nil, false
		}
		if le.Uint32(s[:]) != kind {
			continue
		}
		from, size := img.address(le.Uint32(s[4:])), le.Uint32(s[8:])
		if from == 0 || size > maxEntryPoints {
			return nil, false
		}
		b := make([]byte, size)
		return b, img.mem.Bytes(from, b)
	}
	return nil, false
}

// nameByImage finds out what a method is called that was compiled ahead of time, by its image. Only
// a function that is the body of a method by the image's own list gets its name.
func (vm *VM) nameByImage(n *named, c *code) {
	f, i, ok := vm.functionAt(c.image, uint32(c.start-c.image.base))
	if !ok || c.image.base+uint64(f.Begin) != c.start {
		return
	}
	e := vm.entryPointsOf(c.image)
	if row := e.rows[i]; row != 0 {
		nameDefinition(n, e.module, row, nil, nil)
	} else if of, ok := e.instance(i); ok {
		nameDefinition(n, e.module, of.Row, of.Types, of.Methods)
	}
}

// instance returns the instance of a generic method that a function is the body of.
func (e *entryPoints) instance(function uint32) (climeta.Instance, bool) {
	signature, ok := e.instances[function]
	if !ok {
		return climeta.Instance{}, false
	}
	return e.module.meta.Instance(signature)
}
