package clrdebug

import "testing"

func FuzzBoundaries(f *testing.F) {
	f.Add([]byte{0x02, 0x43, 0x21, 0x10, 0x22})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, all := range [][]Boundary{DecodeBoundaries(b), UnpackBoundaries(b)} {
			InstructionAt(all, 100)
		}
	})
}

func TestNibbleNumbers(t *testing.T) {
	// The examples of docs/design/datacontracts/DebugInfo.md.
	for _, c := range []struct {
		b    []byte
		want uint32
	}{{[]byte{0x00}, 0}, {[]byte{0x07}, 7}, {[]byte{0x09}, 8}, {[]byte{0x7f}, 63}, {[]byte{0x89, 0x08}, 512}} {
		r := NewNibbles(c.b)
		if got := r.Number(); got != c.want || r.Bad {
			t.Errorf("%x is %d, should be %d", c.b, got, c.want)
		}
	}
}
