package native

import (
	"slices"
	"testing"
)

func TestPushSpans(t *testing.T) {
	nop := []byte{0x90}
	cat := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	pushRAX, popRAX, popRBP := []byte{0x50}, []byte{0x58}, []byte{0x5d}
	sub16, add16 := []byte{0x48, 0x83, 0xec, 0x10}, []byte{0x48, 0x83, 0xc4, 0x10}
	add64 := []byte{0x48, 0x83, 0xc4, 0x40}
	call, ret := []byte{0xe8, 0, 0, 0, 0}, []byte{0xc3}
	jmp := func(rel int8) []byte { return []byte{0xeb, byte(rel)} }
	for name, c := range map[string]struct {
		code []byte
		want Spans
	}{
		"nothing":           {cat(nop, call, add64, popRBP, ret), nil},
		"empty":             {nil, nil},
		"a call":            {cat(nop, pushRAX, pushRAX, call, popRAX, popRAX, nop, add64, popRBP, ret), Spans{{1, 10}}},
		"two":               {cat(pushRAX, popRAX, nop, sub16, nop, add16, ret), Spans{{0, 2}, {3, 12}}},
		"never taken back":  {cat(nop, pushRAX, nop), Spans{{0, 3}}},
		"popped elsewhere":  {cat(nop, popRAX, nop), Spans{{0, 3}}},
		"returns inside":    {cat(pushRAX, ret, popRAX), Spans{{0, 3}}},
		"jumps out":         {cat(nop, pushRAX, jmp(1), popRAX, nop), Spans{{0, 6}}},
		"jumps in":          {cat(jmp(1), pushRAX, nop, popRAX), Spans{{0, 5}}},
		"jumps within":      {cat(pushRAX, jmp(1), nop, nop, popRAX, nop), Spans{{0, 6}}},
		"jumps over":        {cat(jmp(3), pushRAX, nop, popRAX, nop), Spans{{2, 5}}},
		"takes back more":   {cat(pushRAX, add64), Spans{{0, 5}}},
		"aligns":            {cat(nop, []byte{0x48, 0x83, 0xe4, 0xf0}, nop), Spans{{0, 6}}},
		"not code":          {cat(pushRAX, []byte{0x06}, popRAX), Spans{{0, 3}}},
		"not code, outside": {cat([]byte{0x06}, pushRAX, popRAX), Spans{{1, 3}}},
	} {
		var r Reader
		if got := r.PushSpans(c.code); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	s := Spans{{2, 5}, {9, 12}}
	for off, want := range map[uint64]bool{0: false, 2: false, 3: true, 4: true, 5: false, 8: false, 9: false, 10: true, 11: true, 12: false, 1 << 40: false} {
		if s.Inside(off) != want {
			t.Errorf("%d is inside: %v", off, !want)
		}
	}
}

func FuzzPushSpans(f *testing.F) {
	f.Add([]byte{0x50, 0x90, 0x58, 0xc3})
	f.Fuzz(func(t *testing.T, code []byte) {
		var r Reader
		last := uint32(0)
		for _, s := range r.PushSpans(code) {
			if s.From < last || s.To <= s.From || int(s.To) > len(code) {
				t.Fatalf("%v", s)
			}
			last = s.To
		}
	})
}
