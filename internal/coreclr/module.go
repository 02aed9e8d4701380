package coreclr

import (
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"

	"github.com/candid-profiler/candid/internal/climeta"
	"github.com/candid-profiler/candid/internal/portablepdb"
)

// module is one module of the process: an assembly's file, or what was made in memory.
type module struct {
	addr   uint64
	name   string // "System.Private.CoreLib", "" if not known
	path   string // of its file, "" if it has none
	meta   *climeta.Metadata
	image  *peImage
	pdb    *portablepdb.PDB
	looked bool // the pdb was looked for
}

// Bounds of modules.
const (
	maxModules  = 1 << 16
	maxPath     = 4096
	maxMetadata = 1 << 30
)

// moduleAt returns the Module at an address. It is never nil, but may have no metadata.
func (vm *VM) moduleAt(addr uint64) *module {
	if m, ok := vm.modules[addr]; ok {
		return m
	}
	if len(vm.modules) >= maxModules {
		clear(vm.modules)
	}
	m := &module{addr: addr}
	l := &vm.lay.module
	if p, ok := vm.mem.Word(addr + l.simple); ok && l.simple != 0 {
		m.name, _ = vm.cstring(p, 512)
	}
	if p, ok := vm.mem.Word(addr + l.path); ok && l.path != 0 {
		m.path, _ = vm.wide(p)
	}
	for _, base := range vm.bases(addr) {
		if img, err := vm.peAt(base); err == nil {
			if meta, err := img.metadata(); err == nil {
				m.meta, m.image = meta, img
				break
			}
		}
	}
	if m.meta == nil {
		m.meta = vm.dynamicMetadata(addr)
	}
	vm.modules[addr] = m
	return m
}

// bases returns where the image of a module may be.
func (vm *VM) bases(addr uint64) []uint64 {
	var out []uint64
	add := func(p uint64) {
		if p != 0 {
			out = append(out, p)
		}
	}
	if l := vm.lay.module.base; l != 0 {
		p, _ := vm.mem.Word(addr + l)
		add(p)
	}
	l := &vm.lay.image
	if l.assembly != 0 {
		assembly, _ := vm.mem.Word(addr + l.assembly)
		file, ok := vm.mem.Word(assembly + l.file)
		for _, at := range []uint64{l.loaded, l.flat} {
			if layout, ok2 := vm.mem.Word(file + at); ok && ok2 && at != 0 {
				p, _ := vm.mem.Word(layout + l.base)
				add(p)
			}
		}
	}
	return out
}

// dynamicMetadata returns the metadata of a module that the program makes while it runs, as far as
// the runtime keeps a copy of it for debuggers: its size and the bytes themselves.
func (vm *VM) dynamicMetadata(addr uint64) *climeta.Metadata {
	l := vm.lay.module.metadata
	p, ok := vm.mem.Word(addr + l)
	if l == 0 || !ok || p == 0 {
		return nil
	}
	var b [4]byte
	if !vm.mem.Bytes(p, b[:]) {
		return nil
	}
	meta, err := climeta.Open(&span{vm.mem, p + 4, uint64(binary.LittleEndian.Uint32(b[:]))})
	if err != nil {
		return nil
	}
	return meta
}

// span is a piece of memory as an io.ReaderAt.
type span struct {
	mem        memory
	base, size uint64
}

// ReadAt implements io.ReaderAt, except that it reads all of p or nothing.
func (s *span) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || uint64(off) > s.size || uint64(len(p)) > s.size-uint64(off) {
		return 0, io.EOF
	}
	if !s.mem.Bytes(s.base+uint64(off), p) {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

// peImage is an assembly's image in memory, as the loader maps it or as the file has it.
type peImage struct {
	mem      memory
	base     uint64
	flat     bool // as in the file
	sections []peSection
	cli      [2]uint32 // RVA and size of the CLI header
	debug    [2]uint32 // of the debug directory
}

type peSection struct{ rva, size, raw, rawSize uint32 }

var errImage = errors.New("not an assembly's image")

// peAt reads the headers of an image (Microsoft, "PE format").
func (vm *VM) peAt(base uint64) (*peImage, error) {
	img := &peImage{mem: vm.mem, base: base}
	var h [64]byte
	if !vm.mem.Bytes(base, h[:]) || h[0] != 'M' || h[1] != 'Z' {
		return nil, errImage
	}
	at := base + uint64(binary.LittleEndian.Uint32(h[0x3c:])&0xffff)
	var coff [24]byte
	if !vm.mem.Bytes(at, coff[:]) || string(coff[:4]) != "PE\x00\x00" {
		return nil, errImage
	}
	count, optional := binary.LittleEndian.Uint16(coff[6:]), binary.LittleEndian.Uint16(coff[20:])
	if count > 96 || optional > 512 {
		return nil, errImage
	}
	opt := make([]byte, optional)
	if !vm.mem.Bytes(at+24, opt) || len(opt) < 2 {
		return nil, errImage
	}
	directories := 96
	if binary.LittleEndian.Uint16(opt) == 0x20b {
		directories = 112
	}
	directory := func(i int) (d [2]uint32) {
		if at := directories + 8*i; at+8 <= len(opt) {
			d[0], d[1] = binary.LittleEndian.Uint32(opt[at:]), binary.LittleEndian.Uint32(opt[at+4:])
		}
		return d
	}
	img.debug, img.cli = directory(6), directory(14)
	at += 24 + uint64(optional)
	for i := range uint64(count) {
		var s [40]byte
		if !vm.mem.Bytes(at+40*i, s[:]) {
			return nil, errImage
		}
		le := binary.LittleEndian
		img.sections = append(img.sections, peSection{rva: le.Uint32(s[12:]), size: le.Uint32(s[8:]), raw: le.Uint32(s[20:]), rawSize: le.Uint32(s[16:])})
	}
	return img, nil
}

// address returns where an address relative to the image is; 0 if it is nowhere.
func (img *peImage) address(rva uint32) uint64 {
	if !img.flat {
		return img.base + uint64(rva)
	}
	for _, s := range img.sections {
		if rva >= s.rva && rva-s.rva < s.rawSize {
			return img.base + uint64(s.raw) + uint64(rva-s.rva)
		}
	}
	return 0
}

// metadata returns the image's metadata. The form of the image is that in which the CLI header
// (ECMA-335 II.25.3.3) is where it should be.
func (img *peImage) metadata() (*climeta.Metadata, error) {
	if img.cli[0] == 0 {
		return nil, errImage
	}
	for _, img.flat = range []bool{false, true} {
		var h [16]byte
		at := img.address(img.cli[0])
		if at == 0 || !img.mem.Bytes(at, h[:]) || binary.LittleEndian.Uint32(h[:]) != 72 {
			continue
		}
		rva, size := binary.LittleEndian.Uint32(h[8:]), binary.LittleEndian.Uint32(h[12:])
		if at = img.address(rva); at == 0 || size > maxMetadata {
			continue
		}
		if meta, err := climeta.Open(&span{img.mem, at, uint64(size)}); err == nil {
			return meta, nil
		}
	}
	return nil, errImage
}

// cstring reads a string that ends with a zero byte.
func (vm *VM) cstring(at uint64, most int) (string, bool) {
	var out []byte
	for len(out) < most && at != 0 {
		b := make([]byte, min(64, 4096-at&4095))
		if !vm.mem.Bytes(at, b) {
			return "", false
		}
		for i, c := range b {
			if c == 0 {
				return string(append(out, b[:i]...)), true
			}
		}
		out, at = append(out, b...), at+uint64(len(b))
	}
	return "", false
}

// wide reads a string of 16-bit characters that ends with a zero.
func (vm *VM) wide(at uint64) (string, bool) {
	var out []uint16
	for len(out) < maxPath && at != 0 {
		var b [2]byte
		if !vm.mem.Bytes(at, b[:]) {
			return "", false
		}
		c := binary.LittleEndian.Uint16(b[:])
		if c == 0 {
			return string(utf16.Decode(out)), true
		}
		out, at = append(out, c), at+2
	}
	return "", false
}
