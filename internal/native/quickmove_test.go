package native

import (
	"bytes"
	"debug/elf"
	"math/rand/v2"
	"os"
	"testing"
)

// byDecoder is what the general decoder returns for the instruction at the beginning of b.
func byDecoder(r *Reader, b []byte, at uint32) (move, int) {
	lo := uint64(0x1000)
	inst, ok := r.code.decode(&codeCopy{lo, b}, lo, lo, lo+uint64(len(b)))
	v := move{at: at, to: nowhere, reg: nowhereReg, also: [3]uint8{nowhereReg, nowhereReg, nowhereReg}}
	if !ok {
		return v, 0
	}
	v.from(&inst, uint64(at)+uint64(inst.Len))
	return v, inst.Len
}

func compareQuick(t *testing.T, r *Reader, b []byte, at uint32) (quick bool) {
	t.Helper()
	var v move
	n := v.quick(b, at)
	if n == 0 {
		return false
	}
	if want, length := byDecoder(r, b, at); n != length || v != want {
		t.Errorf("% x at %d: %d bytes, %+v; the decoder says %d, %+v", b[:16], at, n, v, length, want)
	}
	return true
}

// The quick decoder agrees with the general one on all code of this program, and on random bytes.
func TestQuickMove(t *testing.T) {
	var r Reader
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		exe, err = os.Open(os.Args[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	if f, err := elf.NewFile(exe); err == nil && f.Machine == elf.EM_X86_64 {
		code, err := f.Section(".text").Data()
		if err != nil {
			t.Fatal(err)
		}
		all, quick := 0, 0
		for at := 0; at < min(len(code)-16, 3<<20) && !t.Failed(); {
			_, n := byDecoder(&r, code[at:at+16], uint32(at))
			all++
			if compareQuick(t, &r, code[at:at+16], uint32(at)) {
				quick++
			}
			at += max(n, 1)
		}
		t.Logf("%d of %d instructions of this program are told quickly", quick, all)
		if quick < all*2/3 {
			t.Errorf("only %d of %d instructions are told quickly", quick, all)
		}
	}
	rnd := rand.New(rand.NewPCG(7, 8))
	b := make([]byte, 16)
	for range 2_000_000 {
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		// Most random bytes are not a common instruction.
		switch rnd.IntN(4) {
		case 0:
			b[0] = 0x40 | b[0]&15
		case 1:
			b[0] = 0x0f
		case 2:
			b[0], b[1] = []byte{0x66, 0xf2, 0xf3}[rnd.IntN(3)], 0x0f
		}
		if compareQuick(t, &r, b, rnd.Uint32()); t.Failed() {
			return
		}
	}
}

func FuzzQuickMove(f *testing.F) {
	f.Add([]byte{0x48, 0x8b, 0x44, 0x24, 0x10}, uint32(0))
	f.Add([]byte{0xe9, 0xff, 0xff, 0xff, 0xff}, uint32(3))
	f.Add([]byte{0xf2, 0x41, 0x0f, 0x10, 0x44, 0x24, 0x10}, uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint32) {
		var r Reader
		compareQuick(t, &r, append(b[:min(len(b), 16)], bytes.Repeat([]byte{0x90}, 16)...), at)
	})
}
