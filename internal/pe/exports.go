package pe

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

// Bounds on exports. Ordinals have 16 bits; C++ libraries export names of some hundred bytes.
const (
	maxExports    = 1 << 16
	maxExportName = 4 << 10
)

// Export is a symbol that an image exports.
type Export struct {
	Name string // "#12" if it has an ordinal only
	RVA  uint32
}

// Exports returns what the image exports at addresses of its own, in no order: forwarders to other
// images are left out. An address may have several names. The error wraps ErrAbsent or ErrFormat.
func (m *Image) Exports() ([]Export, error) {
	d, base, err := m.exportDirectory()
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	first, functions, names := le.Uint32(base[16:]), le.Uint32(base[20:]), le.Uint32(base[24:])
	if functions > maxExports || names > maxExports {
		return nil, fmt.Errorf("%w: %d exports, %d names", ErrFormat, functions, names)
	}
	addresses, err := m.read(le.Uint32(base[28:]), 4*int(functions), "export addresses")
	if err != nil {
		return nil, err
	}
	texts, err := m.read(le.Uint32(base[32:]), 4*int(names), "export names")
	if err != nil {
		return nil, err
	}
	ordinals, err := m.read(le.Uint32(base[36:]), 2*int(names), "export ordinals")
	if err != nil {
		return nil, err
	}
	named := make([]bool, functions)
	out := make([]Export, 0, functions)
	add := func(i uint32, name string) {
		if rva := le.Uint32(addresses[4*i:]); rva != 0 && rva-d.RVA >= d.Size {
			out = append(out, Export{name, rva})
		}
	}
	for i := range names {
		n := uint32(le.Uint16(ordinals[2*i:]))
		if n >= functions {
			continue
		}
		if name, ok := m.text(le.Uint32(texts[4*i:]), maxExportName); ok && name != "" {
			add(n, name)
			named[n] = true
		}
	}
	for i := range functions {
		if !named[i] {
			add(i, "#"+strconv.FormatUint(uint64(first)+uint64(i), 10))
		}
	}
	return out, nil
}

// Name returns the file name that the image was linked with, from its exports; "" if it has none.
func (m *Image) Name() string {
	_, b, err := m.exportDirectory()
	if err != nil {
		return ""
	}
	name, _ := m.text(binary.LittleEndian.Uint32(b[12:]), 260)
	return name
}

func (m *Image) exportDirectory() (Directory, []byte, error) {
	d := m.dirs[dirExport]
	if d.RVA == 0 || d.Size == 0 {
		return d, nil, fmt.Errorf("exports: %w", ErrAbsent)
	}
	b, err := m.read(d.RVA, 40, "the export directory")
	return d, b, err
}
