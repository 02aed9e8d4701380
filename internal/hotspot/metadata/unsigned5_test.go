package metadata

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
		u := Unsigned5{Data: c.data, Bias: c.bias}
		if got := u.Next(); got != c.want || u.Bad || u.Pos != len(c.data) {
			t.Errorf("%v (bias %d): %d after %d bytes, want %d", c.data, c.bias, got, u.Pos, c.want)
		}
		if u.Next(); !u.Bad {
			t.Errorf("%v: reading beyond the end was not noticed", c.data)
		}
	}
	for v, want := range []int32{0, -1, 1, -2, 2} {
		if got := (&Unsigned5{Data: []byte{byte(v)}}).Signed(); got != want {
			t.Errorf("zig-zag %d: %d, want %d", v, got, want)
		}
	}
}
