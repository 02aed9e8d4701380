package procsyscall

import "testing"

func TestParse(t *testing.T) {
	for line, want := range map[string]Place{
		"running\n":                          {Running: true},
		"-1 0x7ffc90740588 0x7f036a0cf2ad\n": {Call: NoCall, SP: 0x7ffc90740588, PC: 0x7f036a0cf2ad},
		"202 0x7f01 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe00000010 0xffffffffff600000\n": {
			Call: 202, Args: [6]uint64{0x7f01, 0x189, 0, 0, 0, 0xffffffff}, SP: 0x7ffe00000010, PC: 0xffffffffff600000},
	} {
		if got, ok := Parse([]byte(line)); !ok || got != want {
			t.Errorf("%q: %+v %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "\n", "-1", "-1 0x", "202 0x1 0x2", "x", "202", "-1 0x1 0x2 0x3", "99999999999 0x1", "-1 1 2"} {
		if got, ok := Parse([]byte(line)); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("running\n"))
	f.Add([]byte("-1 0x7ffc90740588 0x7f036a0cf2ad\n"))
	f.Add([]byte("202 0x7f01 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe00000010 0xffffffffff600000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := Parse(b); !ok && p != (Place{}) || ok && p.Call < NoCall {
			t.Errorf("%q: %+v %v", b, p, ok)
		}
	})
}
