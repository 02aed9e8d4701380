package coreclr

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/target"
)

// descriptor is what a runtime publishes about its own data structures for debuggers: the contract
// descriptor (docs/design/datacontracts/contract-descriptor.md and data_descriptor.md in
// dotnet/runtime), in .NET 9 and later.
type descriptor struct {
	contracts map[string]int
	types     map[string]map[string]uint64 // offsets; the key ! is the size
	globals   map[string]uint64            // constants, or what pointers point at
	pointers  map[string]uint64            // addresses of variables
}

// Bounds of a descriptor; that of .NET 10 has 12 KB.
const (
	maxDescriptor = 1 << 20
	maxPointers   = 1 << 12
)

// readDescriptor reads the descriptor at an address. The error wraps ErrDescriptor.
func readDescriptor(r target.Reader, addr uint64) (*descriptor, error) {
	var h [40]byte
	if err := r.ReadAt(h[:], addr); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrDescriptor)
	}
	if string(h[:8]) != "DNCCDAC\x00" {
		return nil, fmt.Errorf("it begins with %q: %w", h[:8], ErrDescriptor)
	}
	le := binary.LittleEndian
	if le.Uint32(h[8:])&2 != 0 {
		return nil, fmt.Errorf("its pointers have 32 bits: %w", ErrDescriptor)
	}
	size, count := le.Uint32(h[12:]), le.Uint32(h[24:])
	if size > maxDescriptor || count > maxPointers {
		return nil, fmt.Errorf("it has %d bytes and %d pointers: %w", size, count, ErrDescriptor)
	}
	text, data := make([]byte, size), make([]byte, 8*count)
	if err := r.ReadAt(text, le.Uint64(h[16:])); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrDescriptor)
	}
	if err := r.ReadAt(data, le.Uint64(h[32:])); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrDescriptor)
	}
	pointers := make([]uint64, count)
	for i := range pointers {
		pointers[i] = le.Uint64(data[8*i:])
	}
	return parseDescriptor(text, pointers)
}

// parseDescriptor reads the text of a descriptor, in its compact form.
func parseDescriptor(text []byte, pointers []uint64) (*descriptor, error) {
	var raw struct {
		Contracts map[string]json.RawMessage            `json:"contracts"`
		Types     map[string]map[string]json.RawMessage `json:"types"`
		Globals   map[string]json.RawMessage            `json:"globals"`
	}
	if err := json.Unmarshal([]byte(strings.TrimRight(string(text), "\x00")), &raw); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrDescriptor)
	}
	d := &descriptor{contracts: map[string]int{}, types: map[string]map[string]uint64{}, globals: map[string]uint64{}, pointers: map[string]uint64{}}
	for name, v := range raw.Contracts {
		var n int
		if json.Unmarshal(v, &n) == nil {
			d.contracts[name] = n
		}
	}
	for name, fields := range raw.Types {
		of := map[string]uint64{}
		for field, v := range fields {
			// An offset, or a list that begins with one.
			if off, ok := number(first(v)); ok && off < 1<<20 {
				of[field] = off
			}
		}
		d.types[name] = of
	}
	for name, v := range raw.Globals {
		// A constant, or [constant, type], or [[index], type]: the index of a pointer.
		v = first(v)
		var index []int
		if json.Unmarshal(v, &index) == nil {
			if len(index) == 1 && index[0] >= 0 && index[0] < len(pointers) {
				d.pointers[name] = pointers[index[0]]
			}
		} else if n, ok := number(v); ok {
			d.globals[name] = n
		}
	}
	return d, nil
}

// first returns the first element of a list whose elements are not all numbers, and anything else
// as it is.
func first(v json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) == nil && len(list) > 1 {
		return list[0]
	}
	return v
}

// number reads a number, or a text with one.
func number(v json.RawMessage) (uint64, bool) {
	s := strings.Trim(string(v), `"`)
	n, err := strconv.ParseUint(s, 0, 64)
	return n, err == nil
}

func (d *descriptor) field(typ, name string) (uint64, bool) {
	off, ok := d.types[typ][name]
	return off, ok
}

func (d *descriptor) global(name string) (uint64, bool) {
	v, ok := d.globals[name]
	return v, ok
}

// pointer returns the address of a variable of the runtime.
func (d *descriptor) pointer(name string) (uint64, bool) {
	v, ok := d.pointers[name]
	return v, ok && v != 0
}
