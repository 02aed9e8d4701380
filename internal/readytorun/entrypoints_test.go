package readytorun

import (
	"maps"
	"testing"
)

// TestEntryPoints reads a table of eighteen methods of which three have code: two in the first block of
// sixteen, and one that is alone in its block.
func TestEntryPoints(t *testing.T) {
	table := []byte{
		18 << 2 << 1, 2, 7, // eighteen, by blocks whose trees are 2 and 7 bytes behind the next byte
		(3<<2 | 3) << 1,          // both halves; the upper one is 3 bytes further
		0 << 2 << 1, 7 << 1 << 1, // only element 0: function 7
		9 << 2 << 1, (3<<2 | 1) << 1, // only element 9: function 3, after something else
		0 << 2 << 1, 20 << 1 << 1, // only element 16: function 20
	}
	want := map[uint32]uint32{7: 1, 3: 10, 20: 17}
	if got := EntryPoints(table, 18, 100); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := EntryPoints(table, 16, 7); !maps.Equal(got, map[uint32]uint32{3: 10}) {
		t.Errorf("of 16 rows and 7 functions: %v", got)
	}
	for n := range table {
		for function, row := range EntryPoints(table[:n], 18, 100) {
			if want[function] != row {
				t.Errorf("cut off after %d bytes: function %d is row %d, want %d", n, function, row, want[function])
			}
		}
	}
}

// FuzzEntryPoints reads tables of entry points.
func FuzzEntryPoints(f *testing.F) {
	f.Add([]byte{3 << 3, 1, 7, 6, 5, 4}, uint32(100))
	f.Fuzz(func(t *testing.T, b []byte, functions uint32) {
		rows := EntryPoints(b, 1<<16, functions)
		if len(rows) > 1<<16 {
			t.Errorf("%d rows", len(rows))
		}
		for i := range rows {
			if i >= functions {
				t.Errorf("function %d of %d", i, functions)
			}
		}
	})
}

// FuzzInstances reads tables of instances; a signature is one byte more than its first says.
func FuzzInstances(f *testing.F) {
	f.Add([]byte{0, 2, 4, 9, 2, 0, 7 << 2}, uint32(100))
	f.Fuzz(func(t *testing.T, b []byte, functions uint32) {
		rows := InstanceEntryPoints(b, functions, func(b []byte) ([]byte, bool) {
			if len(b) == 0 || len(b) <= int(b[0]) {
				return nil, false
			}
			return b[b[0]:], true
		})
		if len(rows) > len(b) {
			t.Errorf("%d instances in %d bytes", len(rows), len(b))
		}
		for i := range rows {
			if i >= functions {
				t.Errorf("function %d of %d", i, functions)
			}
		}
	})
}
