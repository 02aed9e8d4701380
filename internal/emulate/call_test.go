package emulate

import (
	"errors"
	"testing"
)

// TestCall executes small functions and looks at what they return and store.
func TestCall(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   []byte
		args   []uint64
		size   uint8
		want   uint64
		known  bool
		stored uint64 // in the first word of scratch
	}{
		// lea rax, [rdi+rsi*2]; ret
		{"registers", []byte{0x48, 0x8d, 0x04, 0x77, 0xc3}, []uint64{1, 20}, 8, 41, true, 0},
		// mov rax, [rsp+16]; ret
		{"the eighth argument", []byte{0x48, 0x8b, 0x44, 0x24, 0x10, 0xc3}, []uint64{1, 2, 3, 4, 5, 6, 7, 8}, 8, 8, true, 0},
		// push rbx; mov [rdi], rsi; mov eax, [rdi]; pop rbx; ret
		{"scratch", []byte{0x53, 0x48, 0x89, 0x37, 0x8b, 0x07, 0x5b, 0xc3}, []uint64{Scratch, 0x1122334455667788}, 8, 0x55667788, true, 0x1122334455667788},
		// setne al; ret
		{"a flag that is not known", []byte{0x0f, 0x95, 0xc0, 0xc3}, nil, 1, 0, false, 0},
		// mov rax, [rdi]; ret
		{"memory", []byte{0x48, 0x8b, 0x07, 0xc3}, []uint64{dataAt}, 8, 0x0807060504030201, true, 0},
		// mov rax, rbx; ret
		{"a register that is not known", []byte{0x48, 0x89, 0xd8, 0xc3}, nil, 8, 0, false, 0},
	} {
		m := &Machine{}
		s := &image{code: c.code, data: []byte{1, 2, 3, 4, 5, 6, 7, 8}}
		if err := m.Call(SystemV, codeAt, c.args, 100, NewCode(), s); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, ok := m.Returned(c.size); ok != c.known || ok && got != c.want {
			t.Errorf("%s: it returns %#x, %v; should be %#x, %v", c.name, got, ok, c.want, c.known)
		}
		if got, ok := m.Stored(Scratch, 8); !ok || got != c.stored {
			t.Errorf("%s: it stores %#x, %v; should be %#x", c.name, got, ok, c.stored)
		}
	}
	for name, code := range map[string][]byte{
		"a loop without end": {0xeb, 0xfe},
		"a system call":      {0x0f, 0x05, 0xc3},
		"no code":            {0x90},
		"an unknown address": {0xff, 0x23}, // jmp [rbx]
	} {
		m := &Machine{}
		if err := m.Call(SystemV, codeAt, nil, 100, NewCode(), &image{code: code}); !errors.Is(err, ErrCall) || m.Steps > 100 {
			t.Errorf("%s: %v after %d instructions", name, err, m.Steps)
		}
	}
	if err := (&Machine{}).Call(SystemV, codeAt, make([]uint64, MaxCallArgs+1), 100, NewCode(), &image{code: []byte{0xc3}}); !errors.Is(err, ErrCall) {
		t.Errorf("too many arguments: %v", err)
	}
}
