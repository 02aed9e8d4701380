package hotspot

import "testing"

func TestUnsigned5(t *testing.T) {
	for _, c := range []struct {
		bias uint32
		data []byte
		want uint32
	}{
		{0, []byte{0}, 0},
		{0, []byte{191}, 191},
		{0, []byte{192, 0}, 192},
		{0, []byte{193, 1}, 193 + 64},
		{1, []byte{1}, 0},
		{1, []byte{191}, 190},
		{1, []byte{192, 1}, 191},
		{1, []byte{255, 255, 255, 255, 255}, 34087038},
	} {
		u := unsigned5{data: c.data, bias: c.bias}
		if got := u.next(); got != c.want || u.bad || u.pos != len(c.data) {
			t.Errorf("%v (bias %d): %d after %d bytes, want %d", c.data, c.bias, got, u.pos, c.want)
		}
		if u.next(); !u.bad {
			t.Errorf("%v: reading beyond the end was not noticed", c.data)
		}
	}
	for v, want := range []int32{0, -1, 1, -2, 2} {
		if got := (&unsigned5{data: []byte{byte(v)}}).signed(); got != want {
			t.Errorf("zig-zag %d: %d, want %d", v, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	// bci +0 line +3; bci +2 line +1; an escape to bci 1, line 100 (not in order).
	data := []byte{3, 2<<3 | 1, 0xFF, 1, 192, 0, 0}
	lines, ok := decodeLines(data, 0, 50)
	if !ok || len(lines) != 3 {
		t.Fatalf("%v, %v", lines, ok)
	}
	for bci, want := range map[int32]int32{-1: 3, 0: 3, 1: 100, 2: 4, 40: 4} {
		if got := lineAt(lines, bci); got != want {
			t.Errorf("line of bci %d is %d, want %d", bci, got, want)
		}
	}
	if _, ok := decodeLines([]byte{9, 9}, 0, 50); ok {
		t.Error("a table without an end was taken")
	}
}
