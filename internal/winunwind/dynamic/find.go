package dynamic

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/pe"
	"github.com/candid-profiler/candid/internal/winunwind"
	"github.com/candid-profiler/candid/internal/x86"
)

// Open finds the list in a process whose ntdll.dll is image, loaded at base. The error wraps ErrNone.
//
// Windows exports a function that returns its address. In Wine, a function that works on the list
// refers to it: it is the one among the addresses in its code where there is a list.
func Open(mem winunwind.Memory, image *pe.Image, base uint64) (*Tables, error) {
	exports, err := image.Exports()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	at := map[string]uint32{}
	for _, e := range exports {
		if e.Name == listFunction || e.Name == deleteFunction {
			at[e.Name] = e.RVA
		}
	}
	t := &Tables{mem: mem}
	for _, way := range []struct {
		function string
		layout   *layout
	}{{listFunction, &windowsLayout}, {deleteFunction, &wineLayout}} {
		rva, ok := at[way.function]
		if !ok {
			continue
		}
		for _, data := range refersTo(image, rva) {
			t.head, t.layout = base+uint64(data), way.layout
			if t.isList() && t.Read() == nil {
				return t, nil
			}
		}
	}
	return nil, ErrNone
}

const (
	listFunction   = "RtlGetFunctionTableListHead"
	deleteFunction = "RtlDeleteFunctionTable"
)

// maxCode is how much of a function is read, in bytes.
const maxCode = 512

// refersTo returns the addresses of writable data that a function of the image refers to relative to
// its own, in the order of its code. They are relative to the image.
func refersTo(image *pe.Image, function uint32) (out []uint32) {
	n := uint32(maxCode)
	if s := image.Section(function); s == nil {
		return nil
	} else {
		n = min(n, s.RVA+min(s.Size, s.Raw)-function)
	}
	code := make([]byte, n)
	if !image.ReadRVA(code, function) {
		return nil
	}
	for off := 0; off < len(code); {
		inst, err := x86.Decode(code[off:])
		if err != nil {
			break
		}
		if off += inst.Len; inst.Op == x86asm.RET {
			break
		}
		for _, a := range inst.Args {
			m, ok := a.(x86asm.Mem)
			if !ok || m.Base != x86asm.RIP || m.Disp != int64(int32(m.Disp)) {
				continue
			}
			to := function + uint32(off) + uint32(int32(m.Disp))
			if s := image.Section(to); s != nil && s.Flags&pe.SectionWrite != 0 && !s.Executable() {
				out = append(out, to)
			}
		}
	}
	return out
}

// isList reports whether both neighbours of the head know it.
func (t *Tables) isList() bool {
	var b [16]byte
	if !t.mem.Bytes(t.head, b[:]) {
		return false
	}
	next, prev := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	if next == t.head || prev == t.head {
		return next == prev
	}
	var back, on [8]byte
	return t.mem.Bytes(next+8, back[:]) && t.mem.Bytes(prev, on[:]) &&
		binary.LittleEndian.Uint64(back[:]) == t.head && binary.LittleEndian.Uint64(on[:]) == t.head
}
