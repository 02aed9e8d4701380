package pe

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/winunwind"
)

// maxFunctions bounds the exception directory; the largest programs have about a million entries.
const maxFunctions = 1 << 24

// Functions is the table of an image's functions that have unwind information, which is sorted. It
// is not held in memory: each Lookup reads what it needs.
type Functions struct {
	m *Image
	d Directory
	n uint32
}

// Functions returns the exception directory. The error wraps ErrAbsent, ErrUnsupported or ErrFormat.
func (m *Image) Functions() (*Functions, error) {
	d := m.dirs[dirException]
	n := d.Size / winunwind.FunctionSize
	switch {
	case m.Machine != MachineAMD64:
		return nil, fmt.Errorf("exception directory of machine %#x: %w", m.Machine, ErrUnsupported)
	case d.RVA == 0 || n == 0:
		return nil, fmt.Errorf("exception directory: %w", ErrAbsent)
	case n > maxFunctions:
		return nil, fmt.Errorf("exception directory of %d entries: %w", n, ErrFormat)
	}
	return &Functions{m, d, n}, nil
}

// Len returns how many entries there are.
func (t *Functions) Len() int { return int(t.n) }

// At returns entry i, which may refer to another (winunwind.Function.Indirect).
func (t *Functions) At(i int) (winunwind.Function, bool) {
	var b [winunwind.FunctionSize]byte
	if i < 0 || i >= int(t.n) || !t.m.ReadRVA(b[:], t.d.RVA+uint32(i)*winunwind.FunctionSize) {
		return winunwind.Function{}, false
	}
	return winunwind.ParseFunction(b[:]), true
}

// Lookup returns the function that contains rva; false if there is none.
func (t *Functions) Lookup(rva uint32) (winunwind.Function, bool) {
	lo, hi := 0, int(t.n)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		f, ok := t.At(mid)
		if !ok {
			return f, false
		}
		switch {
		case rva < f.Begin:
			hi = mid
		case rva >= f.End:
			lo = mid + 1
		default:
			return f, true
		}
	}
	return winunwind.Function{}, false
}

// Before returns the last function that begins at or before rva; false if there is none.
func (t *Functions) Before(rva uint32) (winunwind.Function, bool) {
	lo, hi := 0, int(t.n)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		f, ok := t.At(mid)
		if !ok {
			return f, false
		}
		if f.Begin <= rva {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return t.At(lo - 1)
}

// Primary returns the entry of the part with which a function begins: f itself, or the last of the
// entries that it is chained to.
func (t *Functions) Primary(f winunwind.Function) winunwind.Function {
	u := winunwind.Unwinder{Reader: t.m}
	return u.Primary(f)
}
