package winunwind

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
)

// image is memory by address.
type image []byte

func (m image) ReadRVA(p []byte, rva uint32) bool {
	if uint64(rva)+uint64(len(p)) > uint64(len(m)) {
		return false
	}
	copy(p, m[rva:])
	return true
}

// function puts code at 0x100 and its unwind information at 0x800.
func function(code string, unwind ...byte) (image, Function) {
	m := make(image, 0x1000)
	for i := range m[:0x800] {
		m[i] = 0xcc
	}
	f := Function{0x100, 0x100 + uint32(copy(m[0x100:], hex(code))), 0x800}
	copy(m[0x800:], unwind)
	return m, f
}

func hex(s string) (b []byte) {
	for _, w := range strings.Fields(s) {
		var v byte
		fmt.Sscanf(w, "%x", &v)
		b = append(b, v)
	}
	return b
}

// text describes a rule: where the CFA is, and what is saved where.
func text(r *ehframe.Rule) string {
	names := []string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%+d", names[r.CFAReg], r.CFAOff)
	for _, s := range r.Saves {
		switch s.How {
		case ehframe.AtCFA:
			fmt.Fprintf(&b, " %s@%+d", names[s.Reg], s.Off)
		case ehframe.IsCFA:
			fmt.Fprintf(&b, " %s=%+d", names[s.Reg], s.Off)
		case ehframe.AtExpr:
			fmt.Fprintf(&b, " %s@%x", names[s.Reg], s.Expr)
		}
	}
	if r.Signal {
		fmt.Fprintf(&b, " interrupted, ra@%+d", r.RA.Off)
	}
	return b.String()
}

// push rbp; push rbx; sub rsp,0x28; call; nop; add rsp,0x28; pop rbx; pop rbp; ret
const ordinary = "55 53 48 83 ec 28 e8 00 00 00 00 90 48 83 c4 28 5b 5d c3"

var ordinaryUnwind = []byte{1, 6, 3, 0, 6, 0x42, 2, 0x30, 1, 0x50, 0, 0}

func TestRule(t *testing.T) {
	framed := []byte{1, 10, 3, 0x25, 10, 0x03, 5, 0x42, 1, 0x50, 0, 0} // lea rbp,[rsp+32] after sub rsp,40; push rbp
	for _, c := range []struct {
		name, code string
		unwind     []byte
		at         uint32
		leaf       bool
		want       string
	}{
		{"entry", ordinary, ordinaryUnwind, 0, true, "rsp+8"},
		{"one push", ordinary, ordinaryUnwind, 1, true, "rsp+16 rbp@-16"},
		{"two pushes", ordinary, ordinaryUnwind, 2, true, "rsp+24 rbx@-24 rbp@-16"},
		{"body", ordinary, ordinaryUnwind, 6, true, "rsp+64 rbx@-24 rbp@-16"},
		{"after a call", ordinary, ordinaryUnwind, 11, false, "rsp+64 rbx@-24 rbp@-16"},
		{"before freeing", ordinary, ordinaryUnwind, 12, true, "rsp+64 rbx@-24 rbp@-16"},
		{"before the pops", ordinary, ordinaryUnwind, 16, true, "rsp+24 rbx@-24 rbp@-16"},
		{"between the pops", ordinary, ordinaryUnwind, 17, true, "rsp+16 rbp@-16"},
		{"at the return", ordinary, ordinaryUnwind, 18, true, "rsp+8"},
		{"a return address is never in an epilogue", ordinary, ordinaryUnwind, 18, false, "rsp+64 rbx@-24 rbp@-16"},
		{"frame register", "55 48 83 ec 28 48 8d 6c 24 20 90 90", framed, 10, true, "rbp+24 rbp@-16"},
		{"before the frame register is set", "55 48 83 ec 28 48 8d 6c 24 20 90 90", framed, 5, true, "rsp+56 rbp@-16"},
		{"lea and pop", "55 48 83 ec 28 48 8d 6c 24 20 48 8d 65 08 5d c3", framed, 10, true, "rbp+24 rbp@-16"},
		{"after lea", "55 48 83 ec 28 48 8d 6c 24 20 48 8d 65 08 5d c3", framed, 14, true, "rsp+16 rbp@-16"},
		{"tail call", "53 48 83 ec 20 48 83 c4 20 5b e9 00 00 01 00", []byte{1, 5, 2, 0, 5, 0x32, 1, 0x30}, 10, true, "rsp+8"},
		{"a jump away from the body", "53 48 83 ec 20 0f 1f 44 00 00 e9 00 00 01 00", []byte{1, 5, 2, 0, 5, 0x32, 1, 0x30}, 10, true, "rsp+48 rbx@-16"},
		{"tail call, only allocated", "48 83 ec 28 48 83 c4 28 e9 00 00 01 00", []byte{1, 4, 1, 0, 4, 0x42, 0, 0}, 8, true, "rsp+8"},
		{"a switch", "48 83 ec 28 90 90 90 90 ff e0", []byte{1, 4, 1, 0, 4, 0x42, 0, 0}, 8, true, "rsp+48"},
		{"saved by moves", "48 83 ec 48 90", []byte{1, 4, 3, 0, 4, 0x34, 8, 0, 4, 0x82, 0, 0}, 4, true, "rsp+80 rbx@-16"},
		{"large", "90 90 90 90", []byte{1, 0, 3, 0, 0, 0x11, 0x78, 0x56, 0x34, 0x02, 0, 0}, 2, true, "rsp+36984448"},
		{"machine frame", "90 90 90 90", []byte{1, 1, 2, 0, 1, 0x02, 0, 0x1a}, 2, true, "rsp+56 rsp@-16 interrupted, ra@-40"},
		{"ret n", "90 c2 10 00", []byte{1, 0, 0, 0}, 1, true, "rsp+8 rsp=+16"},
		{"two pops, version 2", "53 56 48 83 ec 28 90 48 83 c4 28 5e 5b c3", []byte{2, 6, 4, 0, 3, 0x16, 6, 0x42, 2, 0x60, 1, 0x30}, 11, true, "rsp+24 rbx@-16 rsi@-24"},
		{"version 2 says that there is none", "53 90 5b c3 5b c3", []byte{2, 1, 2, 0, 2, 0x16, 1, 0x30}, 2, true, "rsp+16 rbx@-16"},
		{"version 2, one within", "53 90 5b c3 90 90", []byte{2, 1, 3, 0, 2, 0x06, 4, 0x06, 1, 0x30, 0, 0}, 3, true, "rsp+8"},
	} {
		m, f := function(c.code, c.unwind...)
		r, err := (&Unwinder{Reader: m}).Rule(f, f.Begin+c.at, c.leaf)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := text(r); !sameSaves(got, c.want) {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
}

// sameSaves compares two descriptions without the order of their words.
func sameSaves(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	for _, w := range x {
		if !strings.Contains(" "+b+" ", " "+w+" ") {
			return false
		}
	}
	return len(x) == len(y)
}

// A chained part has the prologue of the part that it belongs to behind its own.
func TestChained(t *testing.T) {
	m, f := function(ordinary, ordinaryUnwind...)
	copy(m[0x900:], []byte{1 | FlagChained<<3, 5, 2, 0, 5, 0x74, 2, 0})
	binary.LittleEndian.PutUint32(m[0x908:], f.Begin)
	binary.LittleEndian.PutUint32(m[0x90c:], f.End)
	binary.LittleEndian.PutUint32(m[0x910:], f.Unwind)
	part := Function{0x400, 0x440, 0x900}
	for at, want := range map[uint32]string{0: "rsp+64 rbx@-24 rbp@-16", 5: "rsp+64 rbx@-24 rbp@-16 rdi@-48"} {
		r, err := (&Unwinder{Reader: m}).Rule(part, part.Begin+at, true)
		if err != nil || !sameSaves(text(r), want) {
			t.Errorf("at %d: %v, %v, not %s", at, r, err, want)
		}
	}
	// Through a second entry that refers to the first.
	binary.LittleEndian.PutUint32(m[0x920:], part.Begin)
	binary.LittleEndian.PutUint32(m[0x924:], part.End)
	binary.LittleEndian.PutUint32(m[0x928:], part.Unwind)
	if r, err := (&Unwinder{Reader: m}).Rule(Function{0x400, 0x440, 0x920 | 1}, 0x410, true); err != nil || len(r.Saves) != 3 {
		t.Errorf("indirect: %v, %v", r, err)
	}
	// A chain without an end.
	binary.LittleEndian.PutUint32(m[0x910:], 0x900)
	if _, err := (&Unwinder{Reader: m}).Rule(part, part.Begin, true); !errors.Is(err, ErrFormat) {
		t.Errorf("circular chain: %v", err)
	}
}

// CoreCLR on Unix has an operation of its own, and preserves fewer registers.
func TestUnix(t *testing.T) {
	m, f := function("55 90 90 90 90 90 90 90", 1, 6, 4, 0x05, 6, 0x0b, 0x20, 0, 0, 0, 1, 0x50)
	r, err := (&Unwinder{Reader: m, Unix: true}).Rule(f, f.Begin+6, true)
	if err != nil || !sameSaves(text(r), "rbp-496 rbp@-16") {
		t.Errorf("%v, %v", r, err)
	} else if r.Keep&(1<<cpu.RSI) != 0 {
		t.Error("rsi is not preserved")
	}
	if _, err := (&Unwinder{Reader: m}).Rule(f, f.Begin+6, true); !errors.Is(err, ErrFormat) {
		t.Errorf("on Windows: %v", err)
	}
}

func FuzzRule(f *testing.F) {
	f.Add(ordinaryUnwind, hex(ordinary), uint32(3), true)
	f.Add([]byte{1, 1, 2, 0, 1, 0x02, 0, 0x1a}, []byte{0x90, 0xc3}, uint32(1), true)
	f.Add([]byte{2, 6, 4, 0, 3, 0x16, 6, 0x42, 2, 0x60, 1, 0x30}, hex("48 83 c4 28 5e 5b c3"), uint32(1), true)
	f.Fuzz(func(t *testing.T, unwind, code []byte, pc uint32, leaf bool) {
		m := make(image, 0x2000)
		n := copy(m[0x100:0x800], code)
		copy(m[0x800:], unwind)
		fn := Function{0x100, 0x100 + uint32(n), 0x800}
		u := &Unwinder{Reader: m, Unix: len(code)%2 == 0, Find: func(rva uint32) (Function, bool) { return fn, rva > 0x300 }}
		r, err := u.Rule(fn, fn.Begin+pc%0x900, leaf)
		if (r == nil) != (err != nil) || err != nil && !errors.Is(err, ErrFormat) {
			t.Fatalf("%v, %v", r, err)
		}
		if r == nil {
			return
		}
		// Any rule can be followed.
		if r.CFAReg >= 16 {
			t.Fatalf("CFA of register %d", r.CFAReg)
		}
		for _, s := range r.Saves {
			if s.Reg >= 16 {
				t.Fatalf("register %d", s.Reg)
			}
		}
	})
}
