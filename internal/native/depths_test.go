package native

import "testing"

func TestDepths(t *testing.T) {
	cases := []struct {
		name string
		code []byte
		ok   bool
		want []uint64 // at each offset
	}{
		{"nothing pushed", []byte{0x90, 0x5d, 0xc3}, true, []uint64{0, 0, 0}},
		{"push and pop", []byte{0x52, 0x90, 0x58, 0x90}, true, []uint64{0, 8, 8, 0}},
		// push rdx; je +3; pop rax; jmp +4; add rsp,8; nop: the way out of a
		// string intrinsic, where only a jump tells the depth.
		{"left by a jump", []byte{0x52, 0x74, 0x03, 0x58, 0xeb, 0x04, 0x48, 0x83, 0xc4, 0x08, 0x90}, true,
			[]uint64{0, 8, 8, 8, 0, 0, 8, 8, 8, 8, 0}},
		// jmp +2; pop rax; ret; push rdx; jmp -5: known only from a jump back.
		{"a jump back", []byte{0xeb, 0x02, 0x58, 0xc3, 0x52, 0xeb, 0xfb}, true, []uint64{0, 0, 8, 0, 0, 8, 8}},
		// push rbp; sub rsp,16; nop: a second entry makes the frame itself.
		{"a second entry", []byte{0xc3, 0x55, 0x48, 0x83, 0xec, 0x10, 0x90}, true, []uint64{0, 0, 8, 8, 8, 8, 0}},
		// je +1; push rdx; nop: two depths at one place.
		{"a contradiction", []byte{0x74, 0x01, 0x52, 0x90}, false, nil},
		{"rsp set", []byte{0x48, 0x8d, 0x64, 0x24, 0x08}, false, nil}, // lea rsp,[rsp+8]
	}
	for _, c := range cases {
		var r Reader
		d, ok := r.Depths(c.code)
		if ok != c.ok {
			t.Errorf("%s: followed %v, want %v", c.name, ok, c.ok)
			continue
		}
		for off, want := range c.want {
			if got := d.At(uint64(off)); got != want {
				t.Errorf("%s: depth %d at %d, want %d", c.name, got, off, want)
			}
		}
	}
}

func FuzzDepths(f *testing.F) {
	f.Add([]byte{0x52, 0x74, 0x03, 0x58, 0xeb, 0x04, 0x48, 0x83, 0xc4, 0x08, 0x90})
	f.Fuzz(func(t *testing.T, code []byte) {
		var r Reader
		d, _ := r.Depths(code)
		for i := range d {
			if d[i].Bytes > maxDepth || i > 0 && d[i].From <= d[i-1].From || int(d[i].From) >= len(code) {
				t.Fatalf("%v", d)
			}
		}
	})
}
